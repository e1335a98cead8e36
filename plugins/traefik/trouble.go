package traefik

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// A line for every request without an answer would fill the disk when it is needed most.
const quiet = 10 * time.Second

// trouble keeps the log short: one line in ten seconds, with how many requests it stands for, and one
// when it is over.
type trouble struct {
	name string
	now  func() time.Time
	say  func(name, text string)

	mutex sync.Mutex
	// said is when the last line was written.
	said time.Time
	// lasting tells that the log's last word is that Tidegate is away.
	lasting bool
	// undecided counts requests since the log said last that Tidegate answers: where it comes and goes
	// within a moment, those that no line stands for yet are told with the next.
	undecided int
}

func newTrouble(name string) *trouble {
	return &trouble{name: name, now: time.Now, say: say}
}

// note is told of each request that nobody has decided, and what becomes of such.
func (t *trouble) note(reason, became string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.undecided++
	if t.maySpeak() {
		t.say(t.name, fmt.Sprintf("%s; requests %s: %d", reason, became, t.undecided))
		t.lasting = true
	}
}

// mention is told of what went wrong with one request, and says nothing of others.
func (t *trouble) mention(reason string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.maySpeak() {
		t.say(t.name, reason)
	}
}

// over is told of each request that was decided.
func (t *trouble) over() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.lasting {
		t.say(t.name, fmt.Sprintf("Tidegate answers again; requests that it has not decided meanwhile: %d", t.undecided))
		t.lasting = false
		t.undecided = 0
	}
}

func (t *trouble) maySpeak() bool {
	now := t.now()
	if !t.said.IsZero() && now.Sub(t.said) < quiet {
		return false
	}
	t.said = now
	return true
}

// say writes a line to Traefik's log. Of the two streams that Traefik reads, this is the one that it
// shows unless told otherwise.
func say(name, text string) {
	fmt.Fprintf(os.Stderr, "tidegate: %s: %s\n", name, text)
}
