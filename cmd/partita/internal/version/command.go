package version

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/partita/internal/transfer"
	"github.com/partita-go/partita/storage/bolt"
)

// Command is partita version.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Tell the version, its commit, and the formats of files",
		Long: `Tell the version, the commit that it was built from, and the formats of the
files that it writes. Older formats are upgraded, or refused by name.`,
	}
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(_ context.Context, s cli.Streams) error {
		result := newVersionResult()
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

// versionResult is what the program is, in the words of its JSON.
type versionResult struct {
	Command string `json:"command"`
	Version string `json:"version"`
	// Commit and Time are those of the repository, if the program was built in one; Modified says that files had changed.
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"commit_time,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	System   string `json:"system"`
	// Formats are those of the files that it writes.
	Formats []formatResult `json:"formats"`
}

type formatResult struct {
	File   string `json:"file"`
	Format int    `json:"format"`
}

func newVersionResult() *versionResult {
	r := &versionResult{Command: "version", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	for _, f := range bolt.Formats() {
		r.Formats = append(r.Formats, formatResult{f.File, f.Format})
	}
	r.Formats = append(r.Formats, formatResult{"export", transfer.Version})
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	settings := settingsOf(info)
	r.Version, r.Commit, r.Time, r.Modified = info.Main.Version, settings["vcs.revision"], settings["vcs.time"], settings["vcs.modified"] == "true"
	return r
}

func (r *versionResult) text(c *console.Console) {
	c.Say("partita %s, %s", String(), r.System)
	formats := make([]string, len(r.Formats))
	for i, f := range r.Formats {
		formats[i] = fmt.Sprintf("%s %d", f.File, f.Format)
	}
	c.Say("formats: %s", strings.Join(formats, ", "))
}
