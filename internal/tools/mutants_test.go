package main

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// sum is a module with a function and a test that sees one fault in it.
func sum(t *testing.T, list string) string {
	return write(t,
		"go.mod", "module sum\n\ngo 1.26\n",
		"sum.go", "package sum\n\nfunc Sum(a, b int) int {\n\tif a == 0 {\n\t\treturn b\n\t}\n\treturn a + b\n}\n\nfunc Zero(a int) bool { return a == 0 }\n\n"+
			"func Loop(n int) (sum int) {\n\tfor i := 0; i < n; i++ {\n\t\tsum += i\n\t}\n\tx := n\n\t_ = x\n\treturn sum\n}\n",
		"sum_elsewhere.go", "//go:build !"+runtime.GOOS+"\n\npackage sum\n\nfunc Elsewhere(a, b int) int { return a + b }\n",
		"sum_test.go", "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 || Loop(3) != 3 {\n\t\tt.Fail()\n\t}\n}\n",
		"faults.txt", list)
}

const (
	plusMinus = "# A list.\n\n== minus\nIt subtracts.\ntest . TestSum\nfile sum.go\n<<<\n\treturn a + b\n===\n\treturn a - b\n>>>\n"
	nothing   = "\n== nothing\nNobody looks at zero.\ntest . TestSum\nfile sum.go\n<<<\n\tif a == 0 {\n===\n\tif a == 9 {\n>>>\n"
)

func TestMutants(t *testing.T) {
	for _, tt := range []struct{ name, list, output, want string }{
		{"caught", plusMinus, "planted=1 caught=1 survived=0", ""},
		{"survives", plusMinus + nothing, "mutants: nothing SURVIVED . TestSum", "1 faults were not caught"},
		{"has aged", strings.Replace(plusMinus, "a + b", "a * b", 1), "", "the lines are there 0 times, want once"},
		{"two of a name", plusMinus + plusMinus, "", "there are two of that name"},
		{"no such test", strings.Replace(plusMinus, "TestSum", "TestSun", 1), "", "not there"},
		{"does not build", strings.Replace(plusMinus, "a - b", "a -", 1), "", "do not build"},
		{"no test", strings.Replace(plusMinus, "test . TestSum", "", 1), "", "got 0 tests and 1 changes"},
		{"no change", "== x\ntest . TestSum\nfile sum.go\n", "", "got 1 tests and 0 changes"},
		{"no end", "== x\ntest . TestSum\nfile sum.go\n<<<\n\treturn a + b\n===\n", "", "in this order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := sum(t, tt.list)
			var out strings.Builder
			err := mutants(t.Context(), dir, []string{filepath.Join(dir, "faults.txt")}, &out)
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" {
				wantError(t, err, tt.want)
			}
			if !strings.Contains(out.String(), tt.output) {
				t.Errorf("got output %q, want %q in it", out.String(), tt.output)
			}
		})
	}
}

func TestMutate(t *testing.T) {
	zero := "sum.go Zero: == -> !="
	dir := sum(t, "") // the same for all: what is not changed is compiled once
	patience := map[string]string{"hangs": "2s"}
	for _, tt := range []struct{ name, excuses, match, output, want string }{
		{"survives", "", "Zero", "mutate: " + zero + " SURVIVED (line 10)", "1 changes were not noticed"},
		{"excused", zero + "\tnobody calls it\n", ".", "planted=6 caught=6 survived=0 unbuilt=1", ""},
		{"chosen", "", `Sum: \+ -> -`, "mutate: sum.go Sum: + -> - caught by TestSum\n", ""},
		// On a machine with much else to do it has waited too long before it has computed too long: then it is named.
		{"hangs", "", "Loop: i", "mutate: sum.go Loop: i++ -> i-- caught by a test that hangs", ""},
		{"no reason", zero + "\n", ".", "", "got no reason"},
		{"excuse that has aged", zero + "\tx\nsum.go Zero: < -> <=\tit was a comparison\n", "Sum: ", "", `got an excuse for "sum.go Zero: < -> <="`},
		{"excuse of no file", "product.go Zero: < -> <=\tit was a comparison\n", "Sum: ", "", "product.go"},
		{"nothing", "", "Product", "", "nothing to change"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			excuses := filepath.Join(write(t, "excused.tsv", tt.excuses), "excused.tsv")
			var out strings.Builder
			err := mutate(t.Context(), dir, []string{"-timeout", cmp.Or(patience[tt.name], "12s"), "-excused", excuses, "-match", tt.match, "sum.go", "sum_elsewhere.go"}, &out)
			if tt.want == "" && err != nil {
				t.Fatal(err, out.String())
			}
			if tt.want != "" {
				wantError(t, err, tt.want)
			}
			if !strings.Contains(out.String(), tt.output) {
				t.Errorf("got output %q, want %q in it", out.String(), tt.output)
			}
		})
	}
}

// house is a module with a room. Each of the two packages has a test called TestRoom, which gets to both functions
// of the room: the room's sees what is wrong with one of them, its owner's what is wrong with the other one. Both
// have a function in the same lines of files of one name, of which one does not build when it is changed.
func house(t *testing.T) string {
	own := func(pkg, wrong string) string {
		return "package " + pkg + "\n\nimport \"testing\"\n\n" +
			"func TestRoom(t *testing.T) {\n\tif " + wrong + " {\n\t\tt.Fail()\n\t}\n}\n"
	}
	return write(t,
		"go.mod", "module example.org/sum\n\ngo 1.26\n",
		"sub/sum.go", "package sub; import \"example.org/sum/sub/internal/room\"\n\n"+
			"func Sum(a, b int) int {\n\tn := room.Nothing(a)\n\t_ = n\n\treturn room.Sum(a, b)\n}\n",
		"sub/sum_test.go", own("sub", "Sum(2, 3) != 5"),
		"sub/internal/room/sum.go", "package room\n\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n\n"+
			"func Nothing(a int) int {\n\treturn a - a\n}\n\nfunc Nobody(a int) int {\n\treturn a * 2\n}\n",
		"sub/internal/room/sum_test.go", own("room", "Nothing(1) != 0 || Sum(0, 0) != 0"),
		"other/internal/room/sum.go", "package room\n\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n",
		"other/internal/room/sum_test.go", own("room", "Sum(2, 3) != 5"))
}

// What is changed in a room meets the tests of the room and of the package that it belongs to.
func TestMutateRooms(t *testing.T) {
	const room, owner, alone = "sub/internal/room/sum.go", "sub/sum.go", "other/internal/room/sum.go"
	whole := house(t)
	for _, tt := range []struct{ name, without, match, output, want string }{
		{"owner", "", room + ` Sum: \+ -> -`, "mutate: " + room + " Sum: + -> - caught by TestRoom of sub\n", ""},
		{"room", "", room + " Nothing: ", "mutate: " + room + " Nothing: - -> + caught by TestRoom\n", ""},
		{"neither", "", room + " Nobody: ", room + " Nobody: * -> / SURVIVED (line 12)\n", "1 changes were not noticed"},
		{"room without tests", "sub/internal/room/sum_test.go", room + ` Sum: \+ -> -`, "caught by TestRoom of sub\n", ""},
		{"owner without tests", "sub/sum_test.go", room + " Nothing: ", "caught by TestRoom\n", ""},
		{"owner without tests misses", "sub/sum_test.go", room + ` Sum: \+ -> -`, "SURVIVED", "1 changes were not noticed"},
		{"nobody above", "", alone, "mutate: " + alone + " Sum: + -> - caught by TestRoom\n", ""},
		{"all", "", owner + "|" + room + " Sum|" + alone, "planted=2 caught=2 survived=0 unbuilt=1\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := whole
			if tt.without != "" {
				dir = house(t)
				if err := os.Remove(filepath.Join(dir, tt.without)); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := mutate(t.Context(), dir, []string{"-timeout", "12s", "-match", tt.match, owner, room, alone}, &out)
			if tt.want == "" && err != nil {
				t.Fatal(err, out.String())
			}
			if tt.want != "" {
				wantError(t, err, tt.want)
			}
			if !strings.Contains(out.String(), tt.output) {
				t.Errorf("got output %q, want %q in it", out.String(), tt.output)
			}
		})
	}
}

// What hangs once may have met a machine that stood still.
func TestMutateHangsTwice(t *testing.T) {
	dir := sum(t, "")
	hangsOnce := "package sum\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) == 5 {\n\t\treturn\n\t}\n" +
		"\tif _, err := os.Stat(\"hung\"); err != nil {\n\t\t_ = os.WriteFile(\"hung\", nil, 0o600)\n\t\tfor {\n\t\t}\n\t}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "sum_test.go"), []byte(hangsOnce), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	wantError(t, mutate(t.Context(), dir, []string{"-timeout", "12s", "-match", `Sum: \+ -> -`, "sum.go"}, &out), "1 changes were not noticed")
	if _, err := os.Stat(filepath.Join(dir, "hung")); err != nil {
		t.Errorf("it did not hang at all: %v", err)
	}
}

func TestMutateNamesWhatHangs(t *testing.T) {
	dir := sum(t, "")
	waits := "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 {\n\t\tselect {}\n\t}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "sum_test.go"), []byte(waits), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := mutate(t.Context(), dir, []string{"-timeout", "1s", "-match", `Sum: \+ -> -`, "sum.go"}, &out); err != nil {
		t.Fatal(err, out.String())
	}
	if want := "caught by a test that hangs: TestSum\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got output %q, want %q in it", out.String(), want)
	}
}

// A test that fails in the program with the changes in it, though none is made, has caught nothing.
func TestMutateIsSound(t *testing.T) {
	dir := sum(t, "")
	unsound := "package sum\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSum(t *testing.T) {\n" +
		"\tif _, changed := os.LookupEnv(\"MUTATE_CHANGE\"); Sum(2, 3) != 5 || changed {\n\t\tt.Fail()\n\t}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "sum_test.go"), []byte(unsound), 0o600); err != nil {
		t.Fatal(err)
	}
	err := mutate(t.Context(), dir, []string{"-timeout", "12s", "-match", `Sum: \+ -> -`, "sum.go"}, &strings.Builder{})
	wantError(t, err, "tests fail without a change")
}

// Tests that take their time are no hanging one. Without the change they take less than the limit,
// with it more: nothing else is wrong.
func TestMutatePatience(t *testing.T) {
	dir := sum(t, "")
	slow := "package sum\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestSum(t *testing.T) {\n" +
		"\ttook := 300 * time.Millisecond\n\tif Sum(2, 3) != 5 {\n\t\ttook = 1500 * time.Millisecond\n\t}\n\t<-time.After(took)\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "sum_test.go"), []byte(slow), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := mutate(t.Context(), dir, []string{"-timeout", "1s", "-match", `Sum: \+ -> -`, "sum.go"}, &out)
	wantError(t, err, "1 changes were not noticed")
}

func TestMutateDraws(t *testing.T) {
	dir := sum(t, "")
	drawn := func(seed string) string {
		var out strings.Builder
		_ = mutate(t.Context(), dir, []string{"-sample", "1", "-seed", seed, "-match", "Sum", "sum.go"}, &out)
		return out.String()
	}
	once := drawn("7")
	if !strings.Contains(once, "mutate: seed=7 planted=1 ") {
		t.Errorf("got output %q, want one change planted", once)
	}
	if again := drawn("7"); again != once {
		t.Errorf("got output %q and %q, want the same for the same seed", once, again)
	}
}

// Of those that are drawn one does not build now and then: another one is tried in its place.
func TestMutateDrawsWhatBuilds(t *testing.T) {
	dir := sum(t, "")
	unbuilt := 0
	for seed := 0; unbuilt == 0 && seed < 4; seed++ {
		var out strings.Builder
		_ = mutate(t.Context(), dir, []string{"-sample", "2", "-seed", strconv.Itoa(seed), "sum.go"}, &out)
		if !strings.Contains(out.String(), " planted=2 ") {
			t.Errorf("got output %q, want two changes planted", out.String())
		}
		unbuilt += strings.Count(out.String(), " unbuilt=1")
	}
	if unbuilt == 0 {
		t.Error("no change that does not build was drawn")
	}
}

// A fault that rapid finds leaves nothing beside the code.
func TestFaultsLeaveNoTrace(t *testing.T) {
	mod, sums := ownModule(t)
	for _, tt := range []struct {
		name string
		run  func(dir string, out *strings.Builder) error
	}{
		{"mutants", func(dir string, out *strings.Builder) error {
			return mutants(t.Context(), dir, []string{filepath.Join(dir, "faults.txt")}, out)
		}},
		{"mutate", func(dir string, out *strings.Builder) error { return mutate(t.Context(), dir, []string{"sum.go"}, out) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, "go.mod", mod, "go.sum", sums,
				"sum.go", "package sum\n\nfunc Sum(a, b int) int {\n\treturn a + b\n}\n",
				"sum_test.go", "package sum\n\nimport (\n\t\"testing\"\n\n\t\"pgregory.net/rapid\"\n)\n\n"+
					"func TestSum(t *testing.T) {\n\trapid.Check(t, func(t *rapid.T) {\n\t\ta := rapid.Int().Draw(t, \"a\")\n\t\t"+
					"if Sum(a, 1)-1 != a {\n\t\t\tt.Fatal(\"no sum\")\n\t\t}\n\t})\n}\n",
				"faults.txt", plusMinus)
			var out strings.Builder
			if err := tt.run(dir, &out); err != nil {
				t.Fatal(err, out.String())
			}
			if want := "caught by TestSum\n"; !strings.Contains(out.String(), want) {
				t.Errorf("got output %q, want %q in it", out.String(), want)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != 5 {
				t.Errorf("got %v, want the 5 files that were there", files)
			}
		})
	}
}

// ownModule returns the project's go.mod and go.sum.
func ownModule(t *testing.T) (mod, sums string) {
	t.Helper()
	var texts [2]string
	for i, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1]
}
