package observer_test

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/observer/observertest"
)

const unlimited = math.MaxInt64

// pass lets time pass. After the clock went back a poll comes before it has
// come so far that nobody could tell.
func (m *model) pass(t *rapid.T) {
	seconds := rapid.Int64Range(1, 400).Draw(t, "seconds")
	if seconds > m.room {
		t.Skip("the clock is about to catch up unseen")
	}
	if m.room != unlimited {
		m.room -= seconds
	}
	m.src.Pass(seconds)
}

// turnBack turns the clock back into times that were polled, or before them.
func (m *model) turnBack(t *rapid.T) {
	by := rapid.Int64Range(1, 20_000).Draw(t, "seconds back")
	to, low := observertest.CursorAt(m.src.Clock()-by), m.db.Cursor(stream).Low
	switch safe := observertest.CursorAt(m.src.Clock() - by + 3000); {
	case low <= to: // No mark passed any time that comes again.
	case low > safe:
		m.room = min(m.room, 2000)
	default:
		t.Skip("the clock would catch up unseen")
	}
	m.stepBack(by)
}

// turnFarBack turns the clock back before every time that was.
func (m *model) turnFarBack() {
	m.room = min(m.room, 2000)
	m.stepBack(100_000)
}

func (m *model) stepBack(by int64) {
	m.src.TurnBack(by)
	m.steps++
	m.tally.Count("time went back")
}

func (m *model) backUp(*rapid.T) { m.backup = m.src.Rows() }

// restore brings the backup back; nothing of the transactions is in it.
func (m *model) restore(*rapid.T) {
	m.look(nil)
	m.src.Restore(m.backup)
	m.open = nil
	m.restored++
	m.src.SetIdentity(fmt.Sprintf("db:%d", m.restored))
	m.tally.Count("source restored")
}

// backDate writes a row under a timestamp of long ago.
func (m *model) backDate(t *rapid.T) {
	k := drawKey(t)
	m.src.Delete(k)
	m.src.Add(observertest.At(k, drawValue(t), m.src.Clock()-rapid.Int64Range(0, 500).Draw(t, "seconds ago")))
	m.backDated = true
}
