package cli

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestValues: a flag takes numbers in decimal digits only, and says what it wants.
func TestValues(t *testing.T) {
	const (
		wantInt  = "want a whole number in decimal digits"
		wantUint = "want a whole number in decimal digits, 0 to 18446744073709551615"
	)
	for _, tt := range []struct{ arg, want string }{
		{"--n=12", ""}, {"--n=-12", ""}, {"--n=012", ""},
		{"--n=0xc", `invalid argument "0xc" for "--n" flag: ` + wantInt},
		{"--n=1_2", `invalid argument "1_2" for "--n" flag: ` + wantInt},
		{"--n=abc", `invalid argument "abc" for "--n" flag: ` + wantInt},
		{"--n=", `invalid argument "" for "--n" flag: ` + wantInt},
		{"--u=012", ""}, {"--u=18446744073709551615", ""},
		{"--u=18446744073709551616", `invalid argument "18446744073709551616" for "--u" flag: ` + wantUint},
		{"--u=-1", `invalid argument "-1" for "--u" flag: ` + wantUint},
		{"--u=0b1", `invalid argument "0b1" for "--u" flag: ` + wantUint},
		{"--b", ""}, {"--b=false", ""},
		{"--b=maybe", `invalid argument "maybe" for "--b" flag: want true or false`},
		{"--s=0x1", ""}, {"--f=0x1", ""},
	} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		n, u, b := set.Int("n", 12, ""), set.Uint64("u", 12, ""), set.Bool("b", true, "")
		_ = set.String("s", "", "")
		set.Func("f", "", func(string) error { return nil })
		sayWhatIsWanted(set)
		got := ""
		if err := set.Parse([]string{tt.arg}); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.arg, got, tt.want)
		}
		switch {
		case tt.arg == "--n=012" && *n != 12, tt.arg == "--n=-12" && *n != -12, tt.arg == "--u=012" && *u != 12, tt.arg == "--b=false" && *b:
			t.Errorf("%s: got %d, %d, %v", tt.arg, *n, *u, *b)
		}
	}
}
