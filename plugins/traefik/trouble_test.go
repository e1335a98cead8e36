package traefik

import (
	"reflect"
	"testing"
	"time"
)

func TestTheLogIsShort(t *testing.T) {
	var said []string
	now := time.Unix(1_700_000_000, 0)
	trouble := newTrouble("limits")
	trouble.now = func() time.Time { return now }
	trouble.say = func(_, text string) { said = append(said, text) }

	trouble.over()
	for range [100]int{} {
		trouble.note("away", "let through")
	}
	now = now.Add(quiet)
	trouble.note("away", "let through")
	trouble.note("away", "let through")
	trouble.over()
	trouble.over()
	trouble.note("away", "let through")
	trouble.mention("unreadable")
	trouble.over()
	now = now.Add(quiet)
	trouble.mention("unreadable")
	trouble.over()

	expected := []string{
		"away; requests let through: 1",
		"away; requests let through: 101",
		"Tidegate answers again; requests that it has not decided meanwhile: 102",
		"unreadable",
	}
	if !reflect.DeepEqual(said, expected) {
		t.Errorf("%q", said)
	}
}

// Whoever reads the log wants to know how many passed without a limit, also of those that met a moment
// in which nothing was said.
func TestRequestsOfAMomentInWhichNothingIsSaidAreCountedAllTheSame(t *testing.T) {
	var said []string
	now := time.Unix(1_700_000_000, 0)
	trouble := newTrouble("limits")
	trouble.now = func() time.Time { return now }
	trouble.say = func(_, text string) { said = append(said, text) }

	trouble.note("away", "let through")
	trouble.over()
	for range [50]int{} {
		trouble.note("away", "let through")
		trouble.over()
	}
	now = now.Add(quiet)
	trouble.note("away", "let through")
	trouble.over()
	now = now.Add(quiet)
	trouble.note("away", "let through")
	trouble.over()

	expected := []string{
		"away; requests let through: 1",
		"Tidegate answers again; requests that it has not decided meanwhile: 1",
		"away; requests let through: 51",
		"Tidegate answers again; requests that it has not decided meanwhile: 51",
		"away; requests let through: 1",
		"Tidegate answers again; requests that it has not decided meanwhile: 1",
	}
	if !reflect.DeepEqual(said, expected) {
		t.Errorf("%q", said)
	}
}
