package simtest

// Pause stops the process at its next call, or at the answer to the one that
// is under way, as SIGSTOP does. Its timers still fire, so what they end has
// ended when it wakes; of what it was about to send, it sends every other call
// all the same.
func (w *Wire) Pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead || w.asleep() {
		return
	}
	w.journal.Note(w.name, "falls asleep")
	w.awake = make(chan struct{})
	w.bite(asleep)
}

// Resume lets the process go on.
func (w *Wire) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asleep() {
		w.journal.Note(w.name, "wakes up")
		close(w.awake)
		w.bite(asleep)
	}
}

// Kill ends the process without a word: none of its calls reaches anything any
// more, but for what was orphaned.
func (w *Wire) Kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal.Note(w.name, "is killed")
	w.dead = true
	w.die()
	if w.asleep() {
		close(w.awake)
	}
}

// Asleep reports whether the process is paused.
func (w *Wire) Asleep() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asleep()
}

func (w *Wire) asleep() bool {
	select {
	case <-w.awake:
		return false
	default:
		return true
	}
}

// Doze blocks while the process is paused; the error is [ErrDead] when it was
// killed meanwhile.
func (w *Wire) Doze() error {
	w.mu.Lock()
	awake := w.awake
	w.mu.Unlock()
	<-awake
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return ErrDead
	}
	return nil
}
