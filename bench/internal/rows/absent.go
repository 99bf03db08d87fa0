//go:build nopeers || !cgo

package rows

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/bench/internal/measure"
)

// absent is a row that this program was built without.
type absent struct {
	measure.Row // none: nobody asks more of a row that is not set up

	without string
}

func newAbsent(without string) func(measure.Settings) measure.Row {
	return func(measure.Settings) measure.Row { return absent{without: without} }
}

func (a absent) Setup(context.Context, string) error {
	return fmt.Errorf("%w: this program was built without %s", measure.ErrUnavailable, a.without)
}

func (a absent) Close(context.Context) error { return nil }
