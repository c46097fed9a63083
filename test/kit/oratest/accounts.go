package oratest

import (
	"strings"
	"sync"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// accounts are the users of a server. A verifier takes thousands of hashes, so
// it is made at the first logon that needs it and kept.
type accounts struct {
	mu  sync.Mutex
	all map[string]*account
}

type account struct {
	password string
	verifier *verifier
	locked   bool
}

func (a *accounts) add(user, password string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[strings.ToUpper(user)] = &account{password: password}
}

// challenge returns what to ask of a user. One that is not known is asked too,
// so that nobody learns which users there are.
func (a *accounts) challenge(user string) challenge {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.all[strings.ToUpper(user)]
	if !ok {
		return newChallenge(verifier{salt: random(16), key: random(32)})
	}
	if known.verifier == nil {
		v := newVerifier(known.password)
		known.verifier = &v
	}
	return newChallenge(*known.verifier)
}

// admit judges a client's answer to a challenge.
func (a *accounts) admit(user string, asked challenge, clientKey, password string) (proof string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.all[strings.ToUpper(user)]
	if !ok {
		return "", &wire.Error{Code: 1017}
	}
	if known.locked {
		return "", &wire.Error{Code: 28000}
	}
	if proof, ok = asked.answer(clientKey, password, known.password); !ok {
		return "", &wire.Error{Code: 1017}
	}
	return proof, nil
}

// SetPassword changes the password of an account, or makes one, unlocked.
func (s *Server) SetPassword(user, password string) { s.accounts.add(user, password) }

// SetLocked locks or unlocks an account.
func (s *Server) SetLocked(user string, locked bool) {
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	s.accounts.all[strings.ToUpper(user)].locked = locked
}
