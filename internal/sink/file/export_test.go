package file

import "os"

// BeforeSync has every sync do that first, and fail with its error.
func (s *Sink) BeforeSync(do func() error) {
	s.sync = func(f *os.File) error {
		if err := do(); err != nil {
			return err
		}
		return f.Sync()
	}
}

// BeforeWrite has that happen when the sink has looked at the file and has not
// written yet.
func (s *Sink) BeforeWrite(do func() error) {
	s.write = func(f *os.File, text []byte) (int, error) {
		if err := do(); err != nil {
			return 0, err
		}
		return f.Write(text)
	}
}

// Writes has every write of the sink go through that.
func (s *Sink) Writes(through func(text []byte, write func([]byte) (int, error)) (int, error)) {
	s.write = func(f *os.File, text []byte) (int, error) { return through(text, f.Write) }
}
