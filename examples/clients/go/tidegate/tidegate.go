// Package tidegate is a client of Tidegate for net/http.
package tidegate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Tidegate reads 64 KiB. A request that it cannot read must not look like Tidegate being down.
const questionMax = 16_384

// Tidegate checks requests. Its client reuses connections.
type Tidegate struct {
	URL      string
	Policy   string
	Token    string
	FailOpen bool
	Client   *http.Client
}

// New returns a client that lets requests pass if Tidegate does not respond within the timeout.
func New(url, policy string, timeout time.Duration) *Tidegate {
	transport := &http.Transport{MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	client := &http.Client{Transport: transport, Timeout: timeout}
	return &Tidegate{URL: url, Policy: policy, FailOpen: true, Client: client}
}

type question struct {
	Policy string `json:"policy"`
	IP     string `json:"ip"`
	Method string `json:"method"`
	Path   string `json:"path"`
}

type decision struct {
	Allowed      bool    `json:"allowed"`
	Limit        *string `json:"limit"`
	Remaining    *uint64 `json:"remaining"`
	RetryAfterMs *uint64 `json:"retry_after_ms"`
	ResetMs      *uint64 `json:"reset_ms"`
	DecidedBy    string  `json:"decided_by"`
}

// Limit serves requests that may pass, and responds to the others itself.
func (t *Tidegate) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := t.question(r)
		if err != nil || len(asked) > questionMax {
			problem(w, http.StatusRequestHeaderFieldsTooLarge, "The request is too large.")
			return
		}
		// A client that goes away must not end the check: it would look like Tidegate being down.
		status, body, err := t.check(context.WithoutCancel(r.Context()), asked)
		if err != nil {
			// Tidegate did not respond in time: the switch decides.
			log.Printf("tidegate does not respond: %v", err)
			if t.FailOpen {
				next.ServeHTTP(w, r)
			} else {
				unavailable(w)
			}
			return
		}
		var d decision
		if status != http.StatusOK || json.Unmarshal(body, &d) != nil {
			// Tidegate responded, and has no decision: a wrong policy or token, a request that is too
			// large, or `on_failure: error`. Never open: clients could cause some of these.
			log.Printf("tidegate: %d %s", status, body)
			unavailable(w)
			return
		}
		if !d.Allowed && d.DecidedBy == "failure" {
			unavailable(w) // its store is down: no limit was exceeded
			return
		}
		d.inform(w.Header())
		if d.Allowed {
			next.ServeHTTP(w, r)
			return
		}
		if d.RetryAfterMs != nil {
			w.Header().Set("Retry-After", strconv.FormatUint(seconds(*d.RetryAfterMs), 10))
		}
		problem(w, http.StatusTooManyRequests, "Rate limit exceeded.")
	})
}

func (t *Tidegate) question(r *http.Request) ([]byte, error) {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return nil, err
	}
	return json.Marshal(question{t.Policy, ip, r.Method, r.URL.RequestURI()})
}

func (t *Tidegate) check(ctx context.Context, asked []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL+"/v1/check", bytes.NewReader(asked))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if t.Token != "" {
		request.Header.Set("Authorization", "Bearer "+t.Token)
	}
	response, err := t.Client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	// A body that is read to its end lets the connection be used again.
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// inform adds `RateLimit`, as in draft 11 of the header fields; nothing if no limit applied.
func (d *decision) inform(headers http.Header) {
	if d.Limit == nil || d.Remaining == nil {
		return
	}
	wait := d.ResetMs
	if !d.Allowed {
		wait = d.RetryAfterMs
	}
	state := fmt.Sprintf("%q;r=%d", *d.Limit, *d.Remaining)
	if wait != nil {
		state += fmt.Sprintf(";t=%d", seconds(*wait))
	}
	headers.Set("RateLimit", state)
}

func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	problem(w, http.StatusServiceUnavailable, "Try again in 1 second.")
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}

// seconds rounds milliseconds up.
func seconds(ms uint64) uint64 { return (ms + 999) / 1000 }
