// Package version tells from what the program was built.
package version

import (
	"cmp"
	"runtime/debug"
)

// String tells from what this program was built.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

// versionOf tells the module's version, and the revision if the program was built in a repository.
func versionOf(info *debug.BuildInfo) string {
	settings := settingsOf(info)
	text := cmp.Or(info.Main.Version, "(unknown version)")
	if revision := settings["vcs.revision"]; revision != "" {
		text += ", revision " + revision
		if settings["vcs.modified"] == "true" {
			text += " with changes"
		}
	}
	if info.GoVersion != "" {
		text += ", " + info.GoVersion
	}
	return text
}

func settingsOf(info *debug.BuildInfo) map[string]string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings
}
