package httpapi

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// leastCompressed is how large an answer must be to be compressed, in bytes: one that fits into a packet gains nothing.
const leastCompressed = 1 << 10

// compressors are kept, for each takes 1 MiB.
var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that is there
	return w
}}

// compressed returns what is sent of an answer: it is compressed if the client takes that and it is large.
func (c *call) compressed(body []byte) []byte {
	h := c.w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) < leastCompressed || !takesGzip(c.r.Header) {
		return body
	}
	var b bytes.Buffer
	w := compressors.Get().(*gzip.Writer) //nolint:errcheck // there is nothing else in it
	defer compressors.Put(w)
	w.Reset(&b)
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	h.Set("Content-Encoding", "gzip")
	return b.Bytes()
}

// takesGzip reports whether a client has asked for gzip.
func takesGzip(h http.Header) bool {
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		_, weight, _ := strings.Cut(params, "=")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			return !isZero(strings.TrimSpace(weight))
		}
	}
	return false
}
