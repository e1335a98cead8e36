package traefik

import (
	"context"
	"strings"
	"testing"
)

func TestSettingsThatMakeNoSenseAreToldAllAtOnce(t *testing.T) {
	config := &Config{
		TidegateURL: "127.0.0.1:8080", Timeout: "soon", OnFailure: "open",
		ForwardHeaders: []string{"X-Forwarded-For"}, Unknown: map[string]interface{}{"onFailur": "deny", "a": 1},
	}
	_, err := New(context.Background(), nil, config, "limits")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, expected := range []string{
		"middleware limits", "tidegateURL: expected", `timeout "soon"`, `onFailure "open": expected allow or deny`,
		"X-Forwarded-For is the plugin's own", "unknown settings: a, onFailur",
	} {
		if !strings.Contains(err.Error(), expected) {
			t.Errorf("no %q in: %v", expected, err)
		}
	}
}

func TestBadValues(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"no URL":            func(c *Config) { c.TidegateURL = "" },
		"another scheme":    func(c *Config) { c.TidegateURL = "ftp://a" },
		"a password in it":  func(c *Config) { c.TidegateURL = "http://a:b@c" },
		"a query":           func(c *Config) { c.TidegateURL = "http://c?deny=403" },
		"no timeout":        func(c *Config) { c.Timeout = "" },
		"a negative one":    func(c *Config) { c.Timeout = "-1s" },
		"an endless one":    func(c *Config) { c.Timeout = "1h" },
		"a policy with ..":  func(c *Config) { c.Policy = "../check" },
		"a policy with a ?": func(c *Config) { c.Policy = "api?deny=403" },
		"no header's name":  func(c *Config) { c.ForwardHeaders = []string{"a b"} },
		"an empty name":     func(c *Config) { c.ForwardHeaders = []string{""} },
	} {
		config := CreateConfig()
		spoil(config)
		if _, err := config.settings(); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "a:b") {
			t.Errorf("%s: printed", name)
		}
	}
}

func TestTheDefaultsHold(t *testing.T) {
	read, err := CreateConfig().settings()
	if err != nil || !read.open || read.timeout.String() != "200ms" || read.url != "http://127.0.0.1:8080/v1/auth" {
		t.Errorf("%+v, %v", read, err)
	}
}
