package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// checkPlain fails unless r is text that any log can take: not empty, UTF-8, and
// without control characters other than line ends and tabs.
func checkPlain(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("plain: %w", err)
	}
	if len(text) == 0 {
		return fmt.Errorf("plain: nothing was printed")
	}
	line := 1
	for len(text) > 0 {
		char, size := utf8.DecodeRune(text)
		switch {
		case char == '\n':
			line++
		case char == utf8.RuneError && size == 1, unicode.IsControl(char) && char != '\t':
			return fmt.Errorf("plain: line %d: unexpected %q", line, text[:size])
		}
		text = text[size:]
	}
	return nil
}

// checkJSON fails unless r holds JSON values, at least one, and nothing else.
func checkJSON(r io.Reader) error {
	dec := json.NewDecoder(r)
	for n := 0; ; n++ {
		var value any
		switch err := dec.Decode(&value); {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("json: nothing was printed")
		case err != nil:
			return fmt.Errorf("json: value %d: %w", n+1, err)
		}
	}
}
