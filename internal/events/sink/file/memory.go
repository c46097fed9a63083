package file

import "github.com/google/uuid"

// memory knows the ids that were added last, up to a limit.
type memory struct {
	limit int
	ring  []uuid.UUID
	next  int // the place of the oldest id once the ring is full
	known map[uuid.UUID]struct{}
}

func newMemory(limit int) memory {
	return memory{limit: limit, known: make(map[uuid.UUID]struct{})}
}

func (m *memory) has(id uuid.UUID) bool {
	_, ok := m.known[id]
	return ok
}

func (m *memory) add(id uuid.UUID) {
	if m.has(id) {
		return
	}
	m.known[id] = struct{}{}
	if len(m.ring) < m.limit {
		m.ring = append(m.ring, id)
		return
	}
	delete(m.known, m.ring[m.next])
	m.ring[m.next] = id
	m.next = (m.next + 1) % m.limit
}
