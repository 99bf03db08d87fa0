package serve

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/logs"
)

// newLogs returns what writes log lines. What they tell of damage is noted.
func (c *Config) newLogs(w io.Writer, d *damage) (*logs.Logs, error) {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339TimeEncoder
	encoder := zapcore.NewConsoleEncoder(encoding)
	if c.LogJSON {
		encoder = zapcore.NewJSONEncoder(encoding)
	}
	rules := c.Logs
	if rules == nil {
		rules = map[string]logs.Group{logs.AllGroups: {Level: zap.WarnLevel}}
	}
	l, err := logs.New(d.watch(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), zap.DebugLevel)), rules)
	if err != nil {
		return nil, fmt.Errorf("%w: log: %w", ErrConfig, err)
	}
	return l, nil
}
