package operate

import (
	"strconv"
	"strings"

	"github.com/partita-go/partita/cmd/internal/console"
)

// number is a count, an offset or a size: a JSON number as long as that is exact.
type number = console.Number

// id is an id or a number of a sequence, which may have any size: always a string.
type id uint64

// MarshalJSON implements json.Marshaler.
func (n id) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(n), 10), '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *id) UnmarshalJSON(text []byte) (err error) {
	*(*uint64)(n), err = strconv.ParseUint(strings.Trim(string(text), `"`), 10, 64)
	return err
}
