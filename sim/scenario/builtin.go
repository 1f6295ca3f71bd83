package scenario

// Builtins returns the scenarios that have a name of their own.
func Builtins() []Scenario {
	return []Scenario{{Name: "registers"}}
}

// Builtin returns the built-in scenario of that name.
func Builtin(name string) (Scenario, bool) {
	for _, s := range Builtins() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
