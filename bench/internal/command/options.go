package command

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
)

// options are the flags of run and readers.
type options struct {
	groups       [][]measure.Spec
	plan         measure.Plan
	dir          string
	match        *regexp.Regexp
	repeat       int
	profiles     string // directory; empty: no profiles
	json         bool
	allowMissing bool
}

// parse reads the flags of a command that measures some groups of rows.
func parse(args []string, groups [][]measure.Spec, stderr io.Writer) (options, error) {
	o := options{groups: groups}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usageText)
		flags.PrintDefaults()
	}
	planFlags(flags, &o.plan)
	flags.StringVar(&o.dir, "dir", ".", "directory on the disk to measure; a temporary one is made below it")
	pattern := flags.String("rows", ".", "regular expression of the rows to run")
	flags.IntVar(&o.repeat, "repeat", 1, "how often each row is run, by turns with those that it is compared with")
	flags.StringVar(&o.profiles, "cpuprofile", "", "directory for CPU profiles of the rows of partita")
	flags.BoolVar(&o.json, "json", false, "print a line of JSON for each row instead of the table")
	allowMissingFlag(flags, &o.allowMissing)
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
	if o.repeat < 1 {
		return o, fmt.Errorf("-repeat: got %d, want 1 or more", o.repeat)
	}
	return o, checkPlan(o.plan)
}

func allowMissingFlag(flags *flag.FlagSet, allow *bool) {
	flags.BoolVar(allow, "allow-missing", false, "end well although what a row needs is not installed")
}

// planFlags are the flags that a row's own process gets too.
func planFlags(flags *flag.FlagSet, p *measure.Plan) {
	flags.DurationVar(&p.Window, "time", time.Minute, "how long each row is measured, at least")
	flags.DurationVar(&p.Warmup, "warmup", 5*time.Second, "how long each row is loaded before that")
	flags.Uint64Var(&p.Rounds, "rounds", 10, "how many flushes of partita a row is measured for, in up to 5 times -time")
	flags.IntVar(&p.Workspaces, "workspaces", 10_000, "how many workspaces the events are spread over")
	flags.Int64Var(&p.Memory, "memory", 0, "bolt.Options.Memory of the rows of partita, in bytes; 0: its default")
}

// planArgs are the arguments that planFlags reads.
func planArgs(p measure.Plan) []string {
	return []string{
		"-time", p.Window.String(), "-warmup", p.Warmup.String(),
		"-rounds", fmt.Sprint(p.Rounds), "-workspaces", fmt.Sprint(p.Workspaces), "-memory", fmt.Sprint(p.Memory),
	}
}

func checkPlan(p measure.Plan) error {
	switch {
	case p.Window <= 0:
		return fmt.Errorf("-time: got %v, want more than 0", p.Window)
	case p.Warmup < 0:
		return fmt.Errorf("-warmup: got %v, want 0 or more", p.Warmup)
	case p.Workspaces < 1:
		return fmt.Errorf("-workspaces: got %d, want 1 or more", p.Workspaces)
	case p.Memory < 0:
		return fmt.Errorf("-memory: got %d, want 0 or more", p.Memory)
	}
	return nil
}

// turn is a row that runs for the first or another time.
type turn struct {
	spec   measure.Spec
	repeat int
}

// turns returns what runs, in order: each group of rows is repeated for itself, so that
// what is compared is measured within a short time.
func (o *options) turns() ([]turn, error) {
	var turns []turn
	for _, group := range o.groups {
		for repeat := range o.repeat {
			for _, spec := range group {
				if o.match.MatchString(spec.Name) {
					turns = append(turns, turn{spec: spec, repeat: repeat})
				}
			}
		}
	}
	if len(turns) == 0 {
		return nil, fmt.Errorf("-rows: got no row that matches %v; `bench list` names them", o.match)
	}
	return turns, nil
}

// notInFileNames are the characters of rows' names that files shall not have.
var notInFileNames = regexp.MustCompile(`[^a-z0-9]+`)

// planOf is the plan of one turn.
func (o *options) planOf(t turn) measure.Plan {
	plan := o.plan
	if o.profiles != "" {
		name := fmt.Sprintf("%s-%d.pprof", notInFileNames.ReplaceAllString(t.spec.Name, "-"), t.repeat+1)
		plan.Profile = filepath.Join(o.profiles, name)
	}
	return plan
}
