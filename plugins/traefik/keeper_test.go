package traefik

import (
	"encoding/json"
	"strings"
	"testing"
)

// A configuration of the plugin that asks keeper, commas too many and all.
func ofKeeper() *Config {
	config := CreateConfig()
	config.KeeperRateLimitKey = "ratelimits"
	config.KeeperURL = "https://keeper.example"
	config.KeeperReqTimeout = "100s"
	config.KeeperAdminPassword = "hunter2"
	config.KeeperReloadInterval = "45s"
	config.RatelimitData = `{ "limits": [ { "rules": [ {"urlpathpattern": "/api/v2/merchants/*/users/*/payments/methods$"}, ], "limit": 1000 } ] }`
	return config
}

func TestSettingsOfKeeperAreAcceptedAsTheyAre(t *testing.T) {
	d := newFake(t, status(200, nil, ""))
	config := ofKeeper()
	config.TidegateURL = d.URL
	config.Timeout = "5s"
	if _, _, reached := through(t, config, request()); !reached {
		t.Error("the application was not asked")
	}
	if flaws := config.Keeper().flaws(); len(flaws) > 0 {
		t.Errorf("%q", flaws)
	}
	expected := "keeperRateLimitKey keeperURL keeperReqTimeout keeperAdminPassword keeperReloadInterval ratelimitData"
	if given := strings.Join(config.Keeper().set(), " "); given != expected {
		t.Errorf("%s", given)
	}
}

func TestSettingsOfItsOtherVersionsWereUnknown(t *testing.T) {
	d := newFake(t, status(200, nil, ""))
	config := CreateConfig()
	decoder := json.NewDecoder(strings.NewReader(`{
		"keeperURL": "https://keeper.example", "keeperUsername": "reader", "keeperPassword": "hunter2",
		"keeperSettingsEndpoint": "admin/get", "ratelimitPath": "/limits.json", "ratelimitDebug": "true" }`))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(config); err != nil {
		t.Fatal(err)
	}
	config.TidegateURL = d.URL
	config.Timeout = "5s"
	if _, _, reached := through(t, config, request()); !reached {
		t.Error("the application was not asked")
	}
	expected := "keeperURL keeperUsername keeperPassword keeperSettingsEndpoint ratelimitPath ratelimitDebug"
	if given := strings.Join(config.Keeper().set(), " "); given != expected {
		t.Errorf("%s", given)
	}
	for name, values := range d.asked[0].Header {
		if strings.Contains(strings.Join(values, " "), "hunter2") {
			t.Errorf("%s has the password", name)
		}
	}
}

func TestSettingsOfKeeperGoNowhere(t *testing.T) {
	d := newFake(t, status(200, nil, ""))
	config := ofKeeper()
	config.TidegateURL = d.URL
	config.Timeout = "5s"
	through(t, config, request())
	for name, values := range d.asked[0].Header {
		if strings.Contains(strings.Join(values, " "), "hunter2") {
			t.Errorf("%s has the password", name)
		}
	}
}

func TestFlawsAreToldWithoutValues(t *testing.T) {
	config := ofKeeper()
	config.KeeperReqTimeout = "hunter3"
	config.KeeperReloadInterval = "-1s"
	config.KeeperURL = "hunter4"
	config.RatelimitData = "hunter5"
	flaws := config.Keeper().flaws()
	if len(flaws) != 4 || strings.Contains(strings.Join(flaws, " "), "hunter") {
		t.Errorf("%q", flaws)
	}
}

func TestWithoutSettingsOfKeeperNothingIsSaid(t *testing.T) {
	if set := CreateConfig().Keeper().set(); len(set) > 0 {
		t.Errorf("%q", set)
	}
}
