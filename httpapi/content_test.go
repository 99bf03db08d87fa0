package httpapi

import (
	"strings"
	"testing"
)

// TestContent: what is JSON as it is stored is shown as JSON, all else in base64.
func TestContent(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, isJSON := range map[string]bool{
		`null`: true, `"é\u2028<"`: true, `{"a":[1.50,9007199254740993]}`: true, `"[[[[{{{{\"[["`: true,
		nested(maxDepth): true, nested(maxDepth + 1): false,
		``: false, ` 1`: false, `{"a": 1}`: false, `{`: false, `1 2`: false, "\"\xff\"": false, "\x00": false,
	} {
		if c := contentOf([]byte(text)); (c.JSON != nil) != isJSON || (c.Base64 != nil) == isJSON || isJSON && string(c.JSON) != text {
			t.Errorf("%q: got JSON %q, base64 %v", text, c.JSON, c.Base64)
		}
	}
}
