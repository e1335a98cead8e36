package traefik

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeTidegate is an HTTP server with a fixed response. It records the requests that it gets.
type fakeTidegate struct {
	*httptest.Server
	mutex sync.Mutex
	asked []*http.Request
}

func newFake(t *testing.T, answer http.HandlerFunc) *fakeTidegate {
	t.Helper()
	d := &fakeTidegate{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		d.mutex.Lock()
		d.asked = append(d.asked, req)
		d.mutex.Unlock()
		answer(rw, req)
	}))
	t.Cleanup(d.Close)
	return d
}

func status(code int, header map[string]string, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			rw.Header().Set(name, value)
		}
		rw.WriteHeader(code)
		_, _ = io.WriteString(rw, body)
	}
}

// through sends a request through the middleware, and tells what the client gets and whether the
// application was asked.
func through(t *testing.T, config *Config, req *http.Request) (*http.Response, string, bool) {
	t.Helper()
	reached := false
	application := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		reached = true
		rw.Header().Set("X-Application", "yes")
		_, _ = io.WriteString(rw, "application")
	})
	handler, err := New(context.Background(), application, config, "limits")
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, req)
	response := recorder.Result()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body), reached
}

func asking(d *fakeTidegate) *Config {
	config := CreateConfig()
	config.TidegateURL = d.URL
	config.Timeout = "5s"
	return config
}

func request() *http.Request {
	return httptest.NewRequest(http.MethodGet, "http://shop.example/cart?item=1", nil)
}

func TestAllowedRequestsPassAndShowTheirLimits(t *testing.T) {
	d := newFake(t, status(200, map[string]string{
		"X-RateLimit-Limit": "50", "RateLimit": `"per-client";r=49;t=1`, "RateLimit-Policy": `"per-client";q=50;w=5`,
		"X-Internal": "secret",
	}, ""))
	response, body, reached := through(t, asking(d), request())
	if !reached || body != "application" || response.StatusCode != 200 {
		t.Fatalf("the application was not asked: %d %q", response.StatusCode, body)
	}
	for name, expected := range map[string]string{
		"X-RateLimit-Limit": "50", "RateLimit": `"per-client";r=49;t=1`, "RateLimit-Policy": `"per-client";q=50;w=5`,
		"X-Application": "yes", "X-Internal": "",
	} {
		if given := response.Header.Get(name); given != expected {
			t.Errorf("%s: %q, not %q", name, given, expected)
		}
	}
}

func TestRefusalsReachTheClientAsTheyAre(t *testing.T) {
	for _, code := range []int{402, 403, 429} {
		header := map[string]string{"Retry-After": "3", "RateLimit": `"a";r=0;t=3`, "Content-Type": "application/problem+json"}
		d := newFake(t, status(code, header, `{"status":1}`))
		response, body, reached := through(t, asking(d), request())
		if reached || response.StatusCode != code || body != `{"status":1}` {
			t.Errorf("%d: %d %q, application asked: %v", code, response.StatusCode, body, reached)
		}
		for name, expected := range header {
			if given := response.Header.Get(name); given != expected {
				t.Errorf("%d: %s: %q, not %q", code, name, given, expected)
			}
		}
	}
}

// By the status alone, 401, 404 and most 5xx would be failures, and pass where the choice is `allow`.
func TestMarkedRefusalsOpenNothingWhateverTheirStatus(t *testing.T) {
	for code := 400; code <= 599; code++ {
		header := map[string]string{"X-Denied-Reason": "limit", "Retry-After": "3"}
		d := newFake(t, status(code, header, "refused"))
		response, body, reached := through(t, asking(d), request())
		if reached || response.StatusCode != code || body != "refused" || response.Header.Get("Retry-After") != "3" {
			t.Errorf("%d: %d %q, application asked: %v", code, response.StatusCode, body, reached)
		}
		if given := response.Header.Get("X-Denied-Reason"); given != "" {
			t.Errorf("%d: the client is told %q", code, given)
		}
		d.Close()
	}
}

// Without its store, and with limits that say to deny, Tidegate decides all the same, and says so.
func TestTidegatesOwnWordThatItsStoreIsAwayOpensNothing(t *testing.T) {
	header := map[string]string{"X-Denied-Reason": "unavailable", "Retry-After": "1"}
	d := newFake(t, status(503, header, "away"))
	response, body, reached := through(t, asking(d), request())
	if reached || response.StatusCode != 503 || body != "away" || response.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %q, application asked: %v", response.StatusCode, body, reached)
	}
	if given := response.Header.Get("X-Denied-Reason"); given != "" {
		t.Errorf("the client is told %q", given)
	}
}

// A client can see to these, so they must not let it pass.
func TestQuestionsThatTidegateCannotReadOpenNothing(t *testing.T) {
	for _, code := range []int{400, 414, 431} {
		d := newFake(t, status(code, nil, "unreadable"))
		response, body, reached := through(t, asking(d), request())
		if reached || response.StatusCode != code || body != "unreadable" {
			t.Errorf("%d: %d %q, application asked: %v", code, response.StatusCode, body, reached)
		}
	}
}

func TestWithoutADecisionTheOperatorsChoiceHolds(t *testing.T) {
	hang := make(chan struct{})
	untrusted := map[string]string{"X-Denied-Reason": "untrusted-proxy", "Content-Type": "application/problem+json"}
	cases := map[string]*fakeTidegate{
		"not trusted":            newFake(t, status(403, untrusted, `{"status":403}`)),
		"no policy of that name": newFake(t, status(404, nil, "")),
		"not Tidegate":           newFake(t, status(204, nil, "")),
		"a redirection":          newFake(t, status(302, map[string]string{"Location": "/elsewhere"}, "")),
		"an error":               newFake(t, status(500, nil, "")),
		"a proxy's error":        newFake(t, status(502, nil, "")),
		"a load balancer's 503":  newFake(t, status(503, map[string]string{"Retry-After": "1"}, "no server is available")),
		"an endless answer":      newFake(t, status(200, nil, strings.Repeat("a", bodyBytesMax+1))),
		"slow":                   newFake(t, func(http.ResponseWriter, *http.Request) { <-hang }),
		"down":                   newFake(t, nil),
	}
	t.Cleanup(func() { close(hang) })
	cases["down"].Close()
	for name, d := range cases {
		config := asking(d)
		if name == "slow" {
			config.Timeout = "20ms"
		}
		response, body, reached := through(t, config, request())
		if !reached || response.StatusCode != 200 || body != "application" {
			t.Errorf("%s, allow: %d %q", name, response.StatusCode, body)
		}
		config.OnFailure = "deny"
		response, body, reached = through(t, config, request())
		if reached || response.StatusCode != 503 || response.Header.Get("Retry-After") != "1" ||
			response.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"status":503`) {
			t.Errorf("%s, deny: %d %q, application asked: %v", name, response.StatusCode, body, reached)
		}
	}
}

// A Traefik that was forgotten in `trusted_proxies` is the operator's error, and told as such.
func TestAWantOfTrustIsTold(t *testing.T) {
	reason := map[string]string{"X-Denied-Reason": "untrusted-proxy"}
	read, err := asking(newFake(t, status(403, reason, ""))).settings()
	if err != nil {
		t.Fatal(err)
	}
	given := read.ask(context.Background(), http.Header{})
	if given.verdict != undecided || !strings.Contains(given.reason, "client.trusted_proxies") {
		t.Errorf("%v, %q", given.verdict, given.reason)
	}
}

func TestOnlyTheStatusAndTheReasonTogetherAreAWantOfTrust(t *testing.T) {
	for code, reason := range map[int]string{403: "another", 429: "untrusted-proxy"} {
		d := newFake(t, status(code, map[string]string{"X-Denied-Reason": reason}, ""))
		response, _, reached := through(t, asking(d), request())
		if reached || response.StatusCode != code {
			t.Errorf("%d: %d, application asked: %v", code, response.StatusCode, reached)
		}
	}
}

func TestAClientThatGoesAwayIsNotLetThrough(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	ctx, cancel := context.WithCancel(context.Background())
	d := newFake(t, func(http.ResponseWriter, *http.Request) { cancel(); <-hang })
	_, _, reached := through(t, asking(d), request().WithContext(ctx))
	if reached {
		t.Error("the application was asked")
	}
}

func TestALongTimeoutDoesNotDelayAnAnswer(t *testing.T) {
	d := newFake(t, status(200, nil, ""))
	config := asking(d)
	config.Timeout = timeoutMax.String()
	began := time.Now()
	through(t, config, request())
	if took := time.Since(began); took > timeoutMax/2 {
		t.Errorf("took %s", took)
	}
}
