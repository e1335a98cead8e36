package traefik

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

const bodyBytesMax = 64 << 10

// reasonHeader is how Tidegate tells us why a request does not pass.
const reasonHeader = "X-Denied-Reason"

// verdict is what an answer means.
type verdict int

const (
	// undecided: there is no answer, or none that is about the request.
	undecided verdict = iota
	allowed
	// refused: the client gets the answer as it is.
	refused
	// unreadable: Tidegate cannot make sense of the question. The client gets the answer as it is.
	unreadable
)

// answer is what Tidegate said.
type answer struct {
	verdict verdict
	// reason tells the operator why it was not decided.
	reason string
	status int
	header http.Header
	body   []byte
}

// Headers of an answer that belong to the connection by which it came, and to that message, or are
// for us alone.
var ownOfAnswer = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Transfer-Encoding": true, "Trailer": true, "Upgrade": true,
	"Content-Length": true, "Date": true, reasonHeader: true,
}

// inform tells an allowed client of its limits.
func (a answer) inform(header http.Header) {
	for name, values := range a.header {
		if strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Ratelimit") {
			header[name] = values
		}
	}
}

// pass answers the client as Tidegate did.
func (a answer) pass(rw http.ResponseWriter) {
	header := rw.Header()
	for name, values := range a.header {
		if !ownOfAnswer[name] {
			header[name] = values
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	rw.WriteHeader(a.status)
	_, _ = rw.Write(a.body) // Should the client be gone, there is nothing to do about it.
}

// problem is a body as RFC 9457 has it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// write answers in the plugin's own words.
func write(rw http.ResponseWriter, status int, detail string) {
	kind := "about:blank"
	if status == http.StatusServiceUnavailable {
		kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	}
	body, err := json.Marshal(problem{Type: kind, Title: http.StatusText(status), Status: status, Detail: detail})
	if err != nil {
		body = []byte("{}")
	}
	header := rw.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	rw.WriteHeader(status)
	_, _ = rw.Write(body)
}
