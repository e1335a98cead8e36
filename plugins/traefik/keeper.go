package traefik

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Keeper is what a middleware's configuration says of keeper, the store of limits that another
// plugin asks. It is accepted as it is, so that a configuration can stay when the plugin changes,
// and nothing is done with it: limits are those of Tidegate's configuration, once for all replicas.
// None of it is ever printed, for it holds a password.
type Keeper struct {
	config *Config
}

// Keeper is the part of the configuration that is about keeper.
func (c *Config) Keeper() Keeper {
	return Keeper{config: c}
}

// Traefik makes a middleware anew for each router and after each change; to be told once is enough.
var keeperAnnounced sync.Once

// announce tells the operator, once, what becomes of these settings.
func (k Keeper) announce(name string) {
	set := k.set()
	if len(set) == 0 {
		return
	}
	keeperAnnounced.Do(func() {
		say(name, fmt.Sprintf("%s: accepted and not used. Limits are those of Tidegate's configuration, and hold over all replicas of Traefik",
			strings.Join(set, ", ")))
		for _, flaw := range k.flaws() {
			say(name, flaw)
		}
	})
}

// set names the settings that are there.
func (k Keeper) set() []string {
	var names []string
	add := func(name, value string) {
		if value != "" {
			names = append(names, name)
		}
	}
	add("keeperRateLimitKey", k.config.KeeperRateLimitKey)
	add("keeperURL", k.config.KeeperURL)
	add("keeperReqTimeout", k.config.KeeperReqTimeout)
	add("keeperAdminPassword", k.config.KeeperAdminPassword)
	add("keeperUsername", k.config.KeeperUsername)
	add("keeperPassword", k.config.KeeperPassword)
	add("keeperReloadInterval", k.config.KeeperReloadInterval)
	add("keeperSettingsEndpoint", k.config.KeeperSettingsEndpoint)
	add("ratelimitData", k.config.RatelimitData)
	add("ratelimitPath", k.config.RatelimitPath)
	add("ratelimitDebug", k.config.RatelimitDebug)
	return names
}

// flaws tells, without their values, which settings could not be meant as they are. The other plugin
// accepted them, so they stop nobody.
func (k Keeper) flaws() []string {
	var flaws []string
	duration := func(name, value string) {
		if value == "" {
			return
		}
		if parsed, err := time.ParseDuration(value); err != nil || parsed <= 0 {
			flaws = append(flaws, name+" is not a duration such as 30s")
		}
	}
	duration("keeperReqTimeout", k.config.KeeperReqTimeout)
	duration("keeperReloadInterval", k.config.KeeperReloadInterval)
	if text := k.config.KeeperURL; text != "" {
		if parsed, err := url.Parse(text); err != nil || parsed.Host == "" {
			flaws = append(flaws, "keeperURL is not a URL")
		}
	}
	// Not parsed as JSON: the other plugin's own documentation shows it with commas too many.
	if data := strings.TrimSpace(k.config.RatelimitData); data != "" && !strings.HasPrefix(data, "{") {
		flaws = append(flaws, "ratelimitData is not a JSON object")
	}
	return flaws
}
