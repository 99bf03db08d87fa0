package command

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/rows"
)

// options are the flags of run.
type options struct {
	plan         measure.Plan
	dir          string
	match        *regexp.Regexp
	json         bool
	allowMissing bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usageText)
		flags.PrintDefaults()
	}
	planFlags(flags, &o.plan)
	flags.StringVar(&o.dir, "dir", ".", "directory on the disk to measure; a temporary one is made below it")
	pattern := flags.String("rows", ".", "regular expression of the rows to run")
	flags.BoolVar(&o.json, "json", false, "print a line of JSON for each row instead of the table")
	flags.BoolVar(&o.allowMissing, "allow-missing", false, "end well although what a row needs is not installed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("got argument %q, want flags only", flags.Arg(0))
	}
	var err error
	if o.match, err = regexp.Compile(*pattern); err != nil {
		return o, fmt.Errorf("-rows: %w", err)
	}
	return o, checkPlan(o.plan)
}

// planFlags are the flags that a row's own process gets too.
func planFlags(flags *flag.FlagSet, p *measure.Plan) {
	flags.DurationVar(&p.Window, "time", time.Minute, "how long each row is measured")
	flags.DurationVar(&p.Warmup, "warmup", 5*time.Second, "how long each row is loaded before that")
	flags.IntVar(&p.Workspaces, "workspaces", 10_000, "how many workspaces the events are spread over")
}

// planArgs are the arguments that planFlags reads.
func planArgs(p measure.Plan) []string {
	return []string{"-time", p.Window.String(), "-warmup", p.Warmup.String(), "-workspaces", fmt.Sprint(p.Workspaces)}
}

func checkPlan(p measure.Plan) error {
	switch {
	case p.Window <= 0:
		return fmt.Errorf("-time: got %v, want more than 0", p.Window)
	case p.Warmup < 0:
		return fmt.Errorf("-warmup: got %v, want 0 or more", p.Warmup)
	case p.Workspaces < 1:
		return fmt.Errorf("-workspaces: got %d, want 1 or more", p.Workspaces)
	}
	return nil
}

// chosen returns the rows that run.
func (o *options) chosen() ([]measure.Spec, error) {
	var specs []measure.Spec
	for _, spec := range rows.All() {
		if o.match.MatchString(spec.Name) {
			specs = append(specs, spec)
		}
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("-rows: got no row that matches %v; `bench list` names them", o.match)
	}
	return specs, nil
}
