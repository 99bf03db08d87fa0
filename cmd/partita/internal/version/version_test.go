package version

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, tt := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{}, "(unknown version)"},
		{debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v0.1.0"}}, "v0.1.0, go1.26"},
		{debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
			setting("vcs", "git"), setting("vcs.revision", "abc"), setting("vcs.modified", "false"),
		}}, "v0.1.0, revision abc"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
			setting("vcs.revision", "abc"), setting("vcs.modified", "true"),
		}}, "(devel), revision abc with changes"},
	} {
		if got := versionOf(&tt.info); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
