package logs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/logs"
)

// TestFromSlog: names, levels, fields of all kinds and namespaces come to the handler.
func TestFromSlog(t *testing.T) {
	var b bytes.Buffer
	logger := logs.FromSlog(slog.NewJSONHandler(&b, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	}))
	logger = logger.Named("shops").Named("lane").With(zap.Int("key", 7))
	logger.Debug("not written")
	logger.Info("a", zap.Error(errors.New("full")), zap.Duration("took", time.Second), zap.Stringer("trace", ids.TraceID(1)))
	logger.Warn("b", zap.Strings("names", []string{"x", "y"}))
	logger.With(zap.Namespace("inner"), zap.Bool("c", true)).Error("c", zap.Namespace("more"), zap.Int("d", 1))
	logger.DPanic("d")
	want := `{"level":"INFO","msg":"a","key":7,"logger":"shops.lane","error":"full","took":1000000000,"trace":"0000000000000001"}
{"level":"WARN","msg":"b","key":7,"logger":"shops.lane","names":["x","y"]}
{"level":"ERROR","msg":"c","key":7,"inner":{"c":true,"logger":"shops.lane","more":{"d":1}}}
{"level":"ERROR+4","msg":"d","key":7,"logger":"shops.lane"}
`
	if b.String() != want {
		t.Errorf("got %s, want %s", &b, want)
	}
	b.Reset()
	logger.WithOptions(zap.AddStacktrace(zap.ErrorLevel)).Error("e")
	if !strings.Contains(b.String(), `"stack":"github.com/partita-go/partita/logs_test.TestFromSlog`) {
		t.Errorf("got %s", &b)
	}
}
