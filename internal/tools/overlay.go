package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// writeOverlay writes texts into a directory, and a file that tells the go command to read them in
// place of the files at their absolute paths, which stay as they are.
func writeOverlay(dir string, texts map[string]string) (string, error) {
	var list struct{ Replace map[string]string }
	list.Replace = make(map[string]string)
	for path, text := range texts {
		replaced := overlaid(dir, path)
		list.Replace[path] = replaced
		if err := os.MkdirAll(filepath.Dir(replaced), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(replaced, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}

// overlaid returns where the text stands that is read in place of a file. The compiler's errors show it.
func overlaid(dir, path string) string {
	return filepath.Join(dir, strings.TrimPrefix(path, filepath.VolumeName(path)))
}
