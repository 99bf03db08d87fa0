package operate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"regexp"
)

var (
	checksum = regexp.MustCompile(`,"crc":"[0-9a-f]{8}"}$`)
	digest   = regexp.MustCompile(`"sha256":"[0-9a-f]{64}"`)
)

// reseal gives the lines of a file that was changed the right checksums, as it is described.
func reseal(text []byte) []byte {
	var out []byte
	table, crc := crc32.MakeTable(crc32.Castagnoli), uint32(0)
	for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		content := checksum.ReplaceAll(line, nil)
		content = digest.ReplaceAll(content, fmt.Appendf(nil, `"sha256":"%x"`, sha256.Sum256(out)))
		if i <= 1 {
			crc = 0
		}
		crc = crc32.Update(crc, table, content)
		out = fmt.Appendf(append(out, content...), ",\"crc\":\"%08x\"}\n", crc)
	}
	return out
}
