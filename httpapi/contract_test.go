package httpapi

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is the OpenAPI document, and which of its answers were given.
type contract struct {
	doc map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	seen     map[string]bool
}

const documentName = "openapi.json"

func newContract(t testing.TB) *contract {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPI))
	check(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.AssertContent()
	check(t, compiler.AddResource(documentName, doc))
	return &contract{doc: doc.(map[string]any), compiler: compiler, seen: make(map[string]bool)}
}

// pointer is a place in the document.
type pointer []string

func (p pointer) String() string {
	text := ""
	for _, name := range p {
		text += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return (&url.URL{Fragment: text}).String()
}

// find returns the value at a place, and where it stands itself if there is a reference.
func (k *contract) find(at pointer) (any, pointer) {
	var value any = k.doc
	for i, name := range at {
		object, _ := value.(map[string]any)
		value = object[name]
		object, _ = value.(map[string]any)
		if ref, ok := object["$ref"].(string); ok {
			return k.find(append(strings.Split(strings.TrimPrefix(ref, "#/"), "/"), at[i+1:]...))
		}
	}
	return value, at
}

// valid returns an error unless JSON is valid against the schema at a place.
func (k *contract) valid(at pointer, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	schema, err := k.compiler.Compile(documentName + at.String())
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// operation is a pattern of the mux as the document has it.
func operation(pattern string) pointer {
	method, path, _ := strings.Cut(pattern, " ")
	return pointer{"paths", strings.TrimSuffix(path, "{$}"), strings.ToLower(method)}
}

// checkAnswer returns an error unless the document says that an operation answers like this.
func (k *contract) checkAnswer(pattern string, status int, header http.Header, body []byte) error {
	if !strings.Contains(pattern, " ") && status == http.StatusNoContent && len(body) == 0 {
		return nil // OPTIONS
	}
	if !strings.Contains(pattern, " ") {
		// No operation: the path or the method does not exist.
		return k.valid(pointer{"components", "schemas", "Problem"}, body)
	}
	pattern = strings.TrimSuffix(pattern, "{$}") // the document has no such thing
	contentType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type %q: %w", header.Get("Content-Type"), err)
	}
	_, response := k.find(append(operation(pattern), "responses", strconv.Itoa(status)))
	value, at := k.find(append(slices.Clone(response), "content", contentType, "schema"))
	if value == nil {
		return fmt.Errorf("%s does not answer %d with %s", pattern, status, contentType)
	}
	if err := k.checkHeaders(response, header); err != nil {
		return err
	}
	k.mu.Lock()
	k.seen[answerName(pattern, strconv.Itoa(status), contentType)] = true
	k.mu.Unlock()
	if contentType == streamType {
		return nil
	}
	return k.valid(at, body)
}

func answerName(pattern, status, contentType string) string {
	return pattern + " " + status + " " + contentType
}

func (k *contract) checkHeaders(response pointer, header http.Header) error {
	headers, at := k.find(append(slices.Clone(response), "headers"))
	object, _ := headers.(map[string]any)
	for name := range object {
		text := header.Get(name)
		if text == "" {
			return fmt.Errorf("header %s is missing", name)
		}
		value := strconv.Quote(text)
		if _, err := strconv.Atoi(text); err == nil {
			value = text
		}
		if err := k.valid(append(slices.Clone(at), name, "schema"), []byte(value)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	return nil
}

// watch returns a handler whose answers are checked.
func (k *contract) watch(t testing.TB, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recording := &recording{ResponseWriter: w}
		next.ServeHTTP(recording, r)
		if err := k.checkAnswer(r.Pattern, recording.status, w.Header(), recording.body.Bytes()); err != nil {
			t.Errorf("%s %s: %d: %v in %.2000s", r.Method, r.URL, recording.status, err, recording.body.Bytes())
		}
	})
}

// recording is an answer that is looked at. What a stream sends is not kept.
type recording struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recording) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recording) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recording) Write(b []byte) (int, error) {
	if r.Header().Get("Content-Type") != streamType {
		r.body.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

// documented are all answers that the document has.
func (k *contract) documented() map[string]bool {
	all := make(map[string]bool)
	for path, methods := range k.doc["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			responses, _ := k.find(pointer{"paths", path, method, "responses"})
			for status := range responses.(map[string]any) {
				content, _ := k.find(pointer{"paths", path, method, "responses", status, "content"})
				for contentType := range content.(map[string]any) {
					all[answerName(strings.ToUpper(method)+" "+path, status, contentType)] = true
				}
			}
		}
	}
	return all
}
