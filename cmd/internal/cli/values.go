package cli

import (
	"errors"
	"flag"
	"strconv"
	"time"
)

// value is a flag's value that takes what plain makes of a text, and says what it wants
// instead of "parse error". Package flag would also take numbers in hexadecimal, and 010 for 8.
type value struct {
	flag.Value
	want  string
	plain func(string) (string, error)
}

// Set implements flag.Value.
func (v *value) Set(text string) error {
	plain, err := v.plain(text)
	if err == nil {
		err = v.Value.Set(plain)
	}
	if err != nil {
		return errors.New("want " + v.want)
	}
	return nil
}

// IsBoolFlag says to package flag whether the flag may stand without a value.
func (v *value) IsBoolFlag() bool {
	b, ok := v.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// sayWhatIsWanted lets all flags of a set say what they want.
func sayWhatIsWanted(set *flag.FlagSet) {
	set.VisitAll(func(f *flag.Flag) {
		getter, ok := f.Value.(flag.Getter)
		if !ok {
			return
		}
		v := value{Value: f.Value, plain: func(text string) (string, error) { return text, nil }}
		switch getter.Get().(type) {
		case bool:
			v.want = "true or false"
		case time.Duration:
			v.want = "a duration like 500ms, 2s or 1m30s"
		case int:
			v.want, v.plain = "a whole number in decimal digits", plainInt
		case uint64:
			v.want, v.plain = "a whole number in decimal digits, 0 to 18446744073709551615", plainUint
		default:
			return
		}
		f.Value = &v
	})
}

func plainInt(text string) (string, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return strconv.FormatInt(n, 10), err
}

func plainUint(text string) (string, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	return strconv.FormatUint(n, 10), err
}
