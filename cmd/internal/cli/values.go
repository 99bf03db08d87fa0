package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// value is a flag's value that takes what plain makes of a text, and says what it wants
// instead of "parse error". Package pflag would also take numbers in hexadecimal, and 010 for 8.
type value struct {
	pflag.Value
	want  string
	plain func(string) (string, error)
}

// Set implements pflag.Value.
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

// Required defines a flag that must be given a value.
func Required(c *cobra.Command, name, usage string) *string {
	text := c.Flags().String(name, "", usage)
	c.Flags().Lookup(name).Annotations = map[string][]string{cobra.BashCompOneRequiredFlag: {"true"}}
	return text
}

// DB defines the flag for the directory of a store that must be there.
func DB(c *cobra.Command) *string { return Required(c, "db", "the store's directory, `DIR`") }

// JSON defines the flag for a result as JSON.
func JSON(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "write JSON to stdout, and all else to stderr; integers beyond 2^53-1 are strings")
}

// sayWhatIsWanted lets all flags of a set say what they want.
func sayWhatIsWanted(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		v := value{Value: f.Value, plain: func(text string) (string, error) { return text, nil }}
		switch f.Value.Type() {
		case "bool":
			v.want = "true or false"
		case "int":
			v.want, v.plain = "a whole number in decimal digits", plainInt
		case "uint64":
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
