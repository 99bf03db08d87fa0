package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/messages"
)

// Names of the files that init writes.
const (
	configName     = "partita.toml"
	descriptorName = "application.toml"
)

func initCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "init", Short: "Write the files that serve begins with",
		Long: `Write application.toml, which says what is numbered and how, and partita.toml,
the configuration of serve, both with comments. Look at the first one before a
store is made of it: much of it is for ever. No store is made, and no file is
overwritten.
With --from DIR the application is that of a store, to add kinds and sequences.`,
	}
	set := c.Flags()
	dir := set.String("dir", ".", "write the files to `DIR`, which is made")
	name := set.String("application", "", "the `NAME` of the application (default that of the directory)")
	db := set.String("db", "", "the directory, `DIR`, that the store will have, or has (default store, beside the files)")
	from := set.String("from", "", "the directory, `DIR`, of the store whose application is written")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		if *from != "" && *name != "" {
			return cli.WrongUsage("--application does not go with --from: a store has its name")
		}
		d, err := beginning(ctx, *dir, *name, *from, s.Err)
		if err != nil {
			return err
		}
		p := config.Paths{
			Config: filepath.Join(*dir, configName), Descriptor: filepath.Join(*dir, descriptorName),
			DB: cmp.Or(*db, *from, filepath.Join(*dir, "store")),
		}
		if err := writeBeginning(*dir, &d, p); err != nil {
			return err
		}
		result := &initResult{Command: "init", Application: d.Application, Config: p.Config, Descriptor: p.Descriptor, Store: p.DB, isThere: *from != ""}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

// beginning returns the descriptor to begin with: that of a store, or an example.
func beginning(ctx context.Context, dir, name, from string, notes io.Writer) (d messages.Descriptor, err error) {
	if from != "" {
		store, closeIt, err := openReader(ctx, from, notes)
		if err != nil {
			return d, err
		}
		return store.Descriptor(), closeIt()
	}
	if name == "" {
		full, err := filepath.Abs(dir)
		if err != nil {
			return d, err
		}
		name = filepath.Base(full)
	}
	d = config.Example(name)
	err = cmp.Or(d.Validate(), d.CheckNames(nil))
	if err != nil {
		err = fmt.Errorf("--application: %w", err)
	}
	return d, err
}

// writeBeginning writes both files, or none of them.
func writeBeginning(dir string, d *messages.Descriptor, p config.Paths) error {
	descriptor, err := config.WriteDescriptor(d, p.Config)
	if err != nil {
		return err
	}
	configuration, err := config.WriteConfig(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := writeNew(p.Descriptor, descriptor); err != nil {
		return err
	}
	if err := writeNew(p.Config, configuration); err != nil {
		return errors.Join(err, os.Remove(p.Descriptor))
	}
	return nil
}

// writeNew writes a file that is not there.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there, and stays as it is: want a directory without it", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// initResult is what was written, in the words of its JSON.
type initResult struct {
	Command     string `json:"command"`
	Application string `json:"application"`
	Config      string `json:"config"`
	Descriptor  string `json:"descriptor"`
	Store       string `json:"store"`
	isThere     bool
}

func (r *initResult) text(c *console.Console) {
	c.Say("%s: application %q, its kinds and sequences", r.Descriptor, r.Application)
	c.Say("%s: how it is served, of the store in %s", r.Config, r.Store)
	if r.isThere {
		c.Say("Serve it: partita serve --config %s", r.Config)
		return
	}
	c.Say("Look at both, then make the store and serve it: partita serve --config %s --create", r.Config)
}

// differs says what to do about a descriptor that a store cannot have.
func differs(file, dir string, err error) error {
	if file == "" || !errors.Is(err, messages.ErrDescriptor) {
		return err
	}
	return fmt.Errorf("%s does not fit the store in %s: %w. What the store has stays; partita init --from %s writes it as a file", file, dir, err, dir)
}
