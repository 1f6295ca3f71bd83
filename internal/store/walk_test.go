package store

import (
	"errors"
	"path/filepath"
	"testing"

	"atoll/abd"
	"atoll/tags"
)

// A value that can't be trusted is an error of its own, and the walk goes on;
// behind a head that can't be trusted it doesn't.
func TestWalkOverDamage(t *testing.T) {
	cfg := filled(t, 20)
	path, keys := filepath.Join(cfg.Dir, stateName), keysOf(20)
	b := readFile(t, path)
	flipAt(t, b, keys[7], 0, 4)
	flipAt(t, b, keys[12], -recordHead+5, 4)
	writeFile(t, path, b)
	s := mustOpen(t, cfg)
	defer mustClose(t, s)
	met := 0
	_, err := s.Walk("", func(key abd.Key, _ tags.Tag, _ bool, value func() ([]byte, error)) bool {
		switch v, err := value(); {
		case key != keys[met]:
			t.Fatalf("Walk shows %q, want %q", key, keys[met])
		case met == 7:
			wantDamagedKey(t, err, key)
		case err != nil || string(v) != valueOf(key):
			t.Errorf("the value of %q is %q, %v", key, v, err)
		}
		met++
		return true
	})
	wantDamagedKey(t, err, keys[12])
	if met != 12 {
		t.Errorf("Walk shows %d records before the damage, want 12", met)
	}
}

// What panics in the caller's function isn't taken for damage of the file.
func TestWalkPanics(t *testing.T) {
	s := mustOpen(t, filled(t, 3))
	defer mustClose(t, s)
	mine := errors.New("a mistake of the caller")
	defer func() {
		if r := recover(); r != mine {
			t.Errorf("Walk panics with %v, want %v", r, mine)
		}
	}()
	_, err := s.Walk("", func(_ abd.Key, _ tags.Tag, _ bool, value func() ([]byte, error)) bool {
		if _, err := value(); err != nil {
			t.Error(err)
		}
		panic(mine)
	})
	t.Errorf("Walk returns %v", err)
}
