package traefik

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func told(t *testing.T, config *Config, req *http.Request) http.Header {
	t.Helper()
	read, err := config.settings()
	if err != nil {
		t.Fatal(err)
	}
	header, err := read.question(req)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

func TestTidegateIsAskedAtItsAuthEndpoint(t *testing.T) {
	d := newFake(t, status(200, nil, ""))
	config := asking(d)
	through(t, config, request())
	config.Policy = "api"
	config.TidegateURL += "/"
	through(t, config, request())
	for index, expected := range []string{"/v1/auth", "/v1/auth/api"} {
		if asked := d.asked[index]; asked.URL.String() != expected || asked.Method != http.MethodGet {
			t.Errorf("%s %s, not GET %s", asked.Method, asked.URL, expected)
		}
	}
}

func TestWhatTraefikKnowsIsTold(t *testing.T) {
	req := request()
	req.Method = http.MethodPost
	req.RemoteAddr = "198.51.100.7:4711"
	header := told(t, CreateConfig(), req)
	for name, expected := range map[string]string{
		"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/cart?item=1", "X-Forwarded-Host": "shop.example",
		"X-Forwarded-Proto": "http", "X-Forwarded-For": "198.51.100.7",
	} {
		if given := header[name]; !reflect.DeepEqual(given, []string{expected}) {
			t.Errorf("%s: %q, not %q", name, given, expected)
		}
	}
}

func TestAClientsWordForWhoItIsIsDropped(t *testing.T) {
	req := request()
	req.RemoteAddr = "198.51.100.7:4711"
	for _, name := range []string{
		"X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix",
		"X-Original-Uri", "X-Original-Url", "X-Original-Method", "X-Real-Ip", "Forwarded", "Proxy-Authorization",
		"Te", "Upgrade", "Expect", "X-Hop",
	} {
		req.Header.Add(name, "forged")
	}
	req.Header.Add("Connection", "upgrade, x-hop")
	req.Header.Add("X-Forwarded-For", "203.0.113.1")
	req.Header.Add("X-Forwarded-For", "203.0.113.2")
	req.Header.Add("X-Api-Key", "mine")
	header := told(t, CreateConfig(), req)
	for name, values := range header {
		if strings.Contains(strings.Join(values, " "), "forged") || name == "Connection" {
			t.Errorf("%s: %q went along", name, values)
		}
	}
	if given := header.Get("X-Forwarded-For"); given != "203.0.113.1, 203.0.113.2, 198.51.100.7" {
		t.Errorf("the peer is not the last of X-Forwarded-For: %q", given)
	}
	if given := header.Get("X-Api-Key"); given != "mine" {
		t.Errorf("X-Api-Key: %q", given)
	}
}

func TestWithoutAPeerNobodyVouchesForTheRest(t *testing.T) {
	for _, peer := range []string{"", "@", "unix:1", "198.51.100.7"} {
		req := request()
		req.RemoteAddr = peer
		req.Header.Set("X-Forwarded-For", "203.0.113.1")
		if given := told(t, CreateConfig(), req)["X-Forwarded-For"]; given != nil {
			t.Errorf("%q: %q", peer, given)
		}
	}
}

func TestAZoneIsNoPartOfAnAddress(t *testing.T) {
	req := request()
	req.RemoteAddr = "[fe80::1%eth0]:4711"
	if given := told(t, CreateConfig(), req).Get("X-Forwarded-For"); given != "fe80::1" {
		t.Errorf("%q", given)
	}
}

func TestOnlyNamedHeadersGoAlong(t *testing.T) {
	config := CreateConfig()
	config.ForwardHeaders = []string{"x-api-key", " Authorization"}
	req := request()
	req.Header["X-Api-Key"] = []string{"one", "two"}
	req.Header.Set("Cookie", "session=1")
	header := told(t, config, req)
	if given := header["X-Api-Key"]; !reflect.DeepEqual(given, []string{"one", "two"}) {
		t.Errorf("both lines are to go along, for it to count as sent twice: %q", given)
	}
	if given := header["Cookie"]; given != nil {
		t.Errorf("Cookie went along: %q", given)
	}
}

// Whoever writes an empty list means it: nobody's credentials travel.
func TestWithAnEmptyListNoHeaderGoesAlong(t *testing.T) {
	config := CreateConfig()
	config.ForwardHeaders = []string{}
	req := request()
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key"} {
		req.Header.Set(name, "secret")
	}
	for name, values := range told(t, config, req) {
		if strings.Contains(strings.Join(values, ""), "secret") {
			t.Errorf("%s went along: %q", name, values)
		}
	}
}

// Half sent, it would look as if Tidegate were away.
func TestHeadsThatTidegateWouldNotReadAreRefused(t *testing.T) {
	d := newFake(t, status(500, nil, ""))
	long := request()
	long.Header.Set("Cookie", strings.Repeat("a", headBytesMax))
	many := request()
	for range [headLinesMax + 1]int{} {
		many.Header.Add("X-Line", "a")
	}
	deep := request()
	deep.URL.Path = "/" + strings.Repeat("a", headBytesMax)
	for _, req := range []*http.Request{long, many, deep} {
		response, _, reached := through(t, asking(d), req)
		if reached || response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%d, application asked: %v", response.StatusCode, reached)
		}
	}
	if len(d.asked) > 0 {
		t.Error("Tidegate was asked")
	}
}
