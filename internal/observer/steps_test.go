package observer_test

import (
	"errors"
	"sync"
)

var errBroken = errors.New("broken")

// failAt makes the nth call of that name fail, from 1.
func failAt(call string, n int) func(string) error {
	var mu sync.Mutex
	return func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		if name != call {
			return nil
		}
		if n--; n == 0 {
			return errBroken
		}
		return nil
	}
}
