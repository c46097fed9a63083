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

func newVerifier(password string) verifier {
	salt := random(16)
	seed := slices.Concat(salt, []byte("AUTH_PBKDF2_SPEEDY_KEY"))
	hash := sha512.Sum512(slices.Concat(derive(password, seed, generations, 64), salt))
	return verifier{salt: salt, key: hash[:32]}
}

func derive(password string, salt []byte, rounds, size int) []byte {
	key, err := pbkdf2.Key(sha512.New, password, salt, rounds, size)
	if err != nil {
		panic(err) // None of the sizes above is one that it refuses.
	}
	return key
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
func (c challenge) answer(clientKey, password, want string) (proof string, ok bool) {
	half := decrypt(c.verifier.key, clientKey)
	if len(half) < 32 {
		return "", false
	}
	joined := fmt.Sprintf("%X", slices.Concat(half[:32], c.serverKey))
	key := derive(joined, c.derivation, derivations, 32)
	plain := decrypt(key, password)
	if len(plain) < 32 || subtle.ConstantTimeCompare(unpad(plain[16:]), []byte(want)) != 1 {
		return "", false
	}
	sealed := encrypt(key, slices.Concat(random(16), []byte("SERVER_TO_CLIENT")))
	return strings.ToUpper(hex.EncodeToString(sealed)), true
}

// encrypt and decrypt work on whole blocks, without padding.
func encrypt(key, plain []byte) []byte {
	out := make([]byte, len(plain))
	cipher.NewCBCEncrypter(blocks(key), make([]byte, aes.BlockSize)).CryptBlocks(out, plain)
	return out
}

// decrypt returns nothing where sealed is nothing that was encrypted.
func decrypt(key []byte, sealed string) []byte {
	in, err := hex.DecodeString(sealed)
	if err != nil || len(in)%aes.BlockSize != 0 {
		return nil
	}
	out := make([]byte, len(in))
	cipher.NewCBCDecrypter(blocks(key), make([]byte, aes.BlockSize)).CryptBlocks(out, in)
	return out
}

func blocks(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the keys above are all of 32 bytes
	}
	return block
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
