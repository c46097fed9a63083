package oratest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// verifierType says that passwords are hashed as databases do from 12c on.
	verifierType = 18453
	// generations and derivations are how often the two hashes are repeated.
	generations = 4096
	derivations = 3
)

// verifier is what a database keeps of a password.
type verifier struct {
	salt []byte
	key  []byte
}

func newVerifier(password string) (verifier, error) {
	salt := random(16)
	seed := slices.Concat(salt, []byte("AUTH_PBKDF2_SPEEDY_KEY"))
	speedy, err := pbkdf2.Key(sha512.New, password, seed, generations, 64)
	if err != nil {
		return verifier{}, err
	}
	hash := sha512.Sum512(slices.Concat(speedy, salt))
	return verifier{salt: salt, key: hash[:32]}, nil
}

// challenge is what a server asks of a client that logs on.
type challenge struct {
	verifier   verifier
	serverKey  []byte
	derivation []byte
}

func newChallenge(v verifier) challenge {
	return challenge{verifier: v, serverKey: random(32), derivation: random(16)}
}

// sessionKey is the server's half of the key, as it is sent.
func (c challenge) sessionKey() string {
	return strings.ToUpper(hex.EncodeToString(encrypt(c.verifier.key, c.serverKey)))
}

// answer reports whether a client's half of the key and its password fit, and
// what the server proves itself with.
func (c challenge) answer(clientKey, password, want string) (proof string, err error) {
	half, err := decrypt(c.verifier.key, clientKey)
	if err != nil || len(half) < 32 {
		return "", errors.New("the client's half of the session key is not one")
	}
	joined := fmt.Sprintf("%X", slices.Concat(half[:32], c.serverKey))
	key, err := pbkdf2.Key(sha512.New, joined, c.derivation, derivations, 32)
	if err != nil {
		return "", err
	}
	plain, err := decrypt(key, password)
	if err != nil || len(plain) < 32 {
		return "", errors.New("the password is not encrypted")
	}
	given := unpad(plain[16:])
	if subtle.ConstantTimeCompare(given, []byte(want)) != 1 {
		return "", errors.New("another password")
	}
	sealed := encrypt(key, slices.Concat(random(16), []byte("SERVER_TO_CLIENT")))
	return strings.ToUpper(hex.EncodeToString(sealed)), nil
}

// encrypt and decrypt work on whole blocks, without padding.
func encrypt(key, plain []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the keys above are all of 32 bytes
	}
	out := make([]byte, len(plain))
	cipher.NewCBCEncrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(out, plain)
	return out
}

func decrypt(key []byte, sealed string) ([]byte, error) {
	in, err := hex.DecodeString(sealed)
	if err != nil {
		return nil, err
	}
	if len(in)%aes.BlockSize != 0 {
		return nil, fmt.Errorf("%d bytes are no whole blocks", len(in))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(in))
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(out, in)
	return out, nil
}

func unpad(b []byte) []byte {
	n := int(b[len(b)-1])
	if n == 0 || n > aes.BlockSize || n > len(b) || !bytes.Equal(b[len(b)-n:], bytes.Repeat([]byte{byte(n)}, n)) {
		return b
	}
	return b[:len(b)-n]
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
