package traefik

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strings"
	"time"
)

// Config is what the middleware's configuration may say. Traefik fills it, by names of fields in
// any case.
type Config struct {
	// TidegateURL is the URL of Tidegate's HTTP listener.
	TidegateURL string `json:"tidegateURL,omitempty"`
	// Policy is the name of a policy; the first one unless told.
	Policy string `json:"policy,omitempty"`
	// Timeout is how long a request waits for Tidegate.
	Timeout string `json:"timeout,omitempty"`
	// OnFailure says what becomes of requests while Tidegate does not answer: allow or deny.
	OnFailure string `json:"onFailure,omitempty"`
	// ForwardHeaders names the headers of a request that Tidegate is told; all unless told, and none where
	// the list is empty.
	ForwardHeaders []string `json:"forwardHeaders,omitempty"`

	// The settings of the plugin that asks keeper, in whose place this one can stand: see Keeper.
	KeeperRateLimitKey     string `json:"keeperRateLimitKey,omitempty"`
	KeeperURL              string `json:"keeperURL,omitempty"`
	KeeperReqTimeout       string `json:"keeperReqTimeout,omitempty"`
	KeeperAdminPassword    string `json:"keeperAdminPassword,omitempty"`
	KeeperUsername         string `json:"keeperUsername,omitempty"`
	KeeperPassword         string `json:"keeperPassword,omitempty"`
	KeeperReloadInterval   string `json:"keeperReloadInterval,omitempty"`
	KeeperSettingsEndpoint string `json:"keeperSettingsEndpoint,omitempty"`
	RatelimitData          string `json:"ratelimitData,omitempty"`
	RatelimitPath          string `json:"ratelimitPath,omitempty"`
	RatelimitDebug         string `json:"ratelimitDebug,omitempty"`

	// Unknown is what fits no other field: a misspelt setting is not to be passed over in silence.
	Unknown map[string]interface{} `json:"-" mapstructure:",remain"`
}

// CreateConfig is called by Traefik for the settings that hold unless told otherwise.
func CreateConfig() *Config {
	return &Config{
		TidegateURL: "http://127.0.0.1:8080",
		Timeout:     "200ms",
		OnFailure:   "allow",
	}
}

// settings is a Config that makes sense.
type settings struct {
	url     string
	timeout time.Duration
	open    bool
	// forward has canonical names; nil means every header, and an empty list none.
	forward []string
}

const timeoutMax = 10 * time.Second

var policyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// settings reads the configuration. The error tells everything that is wrong with it.
func (c *Config) settings() (settings, error) {
	var read settings
	var wrong []string
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	var err error
	read.url, err = c.url()
	note(err)
	read.timeout, err = time.ParseDuration(c.Timeout)
	if err != nil || read.timeout <= 0 || read.timeout > timeoutMax {
		note(fmt.Errorf("timeout %q: expected a duration from 1ms to %s, such as 200ms", c.Timeout, timeoutMax))
	}
	switch c.OnFailure {
	case "allow":
		read.open = true
	case "deny":
	default:
		note(fmt.Errorf("onFailure %q: expected allow or deny", c.OnFailure))
	}
	read.forward, err = c.forward()
	note(err)
	note(c.unknown())
	if len(wrong) > 0 {
		return settings{}, errors.New(strings.Join(wrong, "; "))
	}
	return read, nil
}

// url is the address that is asked.
func (c *Config) url() (string, error) {
	base, err := url.Parse(c.TidegateURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return "", fmt.Errorf("tidegateURL: expected the URL of Tidegate's HTTP listener, such as http://127.0.0.1:8080")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return "", fmt.Errorf("tidegateURL: expected a URL without user, query and fragment")
	}
	asked := strings.TrimRight(base.String(), "/") + "/v1/auth"
	if c.Policy == "" {
		return asked, nil
	}
	if !policyName.MatchString(c.Policy) {
		return "", fmt.Errorf("policy %q: expected the name of a policy in Tidegate's configuration", c.Policy)
	}
	return asked + "/" + c.Policy, nil
}

func (c *Config) forward() ([]string, error) {
	if c.ForwardHeaders == nil {
		return nil, nil
	}
	names := make([]string, 0, len(c.ForwardHeaders))
	for _, name := range c.ForwardHeaders {
		canonical := http.CanonicalHeaderKey(strings.TrimSpace(name))
		if canonical == "" || strings.ContainsAny(canonical, " \t\r\n:") {
			return nil, fmt.Errorf("forwardHeaders: %q is not the name of a header", name)
		}
		if !mayForward(canonical) {
			return nil, fmt.Errorf("forwardHeaders: %s is the plugin's own to set, or ends at Traefik", canonical)
		}
		names = append(names, canonical)
	}
	return names, nil
}

func (c *Config) unknown() error {
	if len(c.Unknown) == 0 {
		return nil
	}
	var names []string
	for name := range c.Unknown {
		names = append(names, name)
	}
	sort.Strings(names)
	return fmt.Errorf("unknown settings: %s; there are tidegateURL, policy, timeout, onFailure, forwardHeaders and those of keeper",
		strings.Join(names, ", "))
}
