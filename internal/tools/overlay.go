package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
)

// writeOverlay writes texts into a directory, and a file that tells the go command to read them in
// place of the files at their absolute paths, which stay as they are. The texts have the names of
// these files, which the compiler's errors show.
func writeOverlay(dir string, texts map[string]string) (string, error) {
	var list struct{ Replace map[string]string }
	list.Replace = make(map[string]string)
	for path, text := range texts {
		replaced := filepath.Join(dir, strconv.Itoa(len(list.Replace)), filepath.Base(path))
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
