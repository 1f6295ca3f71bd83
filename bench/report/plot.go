package report

import "os"

func Plot(path string, all []Replacement) error { return os.WriteFile(path, nil, 0o644) }
