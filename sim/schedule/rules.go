package schedule

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// RuleNames returns the names of all rules in some structs of rules and in those
// that they contain, each "package.Field".
func RuleNames(rules ...any) []string {
	var names []string
	for _, s := range rules {
		eachRule(reflect.ValueOf(s), func(name string, _ reflect.Value) { names = append(names, name) })
	}
	return names
}

// MatchRule reports whether a schedule that names a rule in short, Field, or as
// package.Field, may mean the one of that full name.
func MatchRule(full, name string) bool {
	_, field, _ := strings.Cut(full, ".")
	return name == full || name == field
}

// breakRule sets the field of the named rule. The rules are pointers to structs.
func breakRule(name string, rules []any) error {
	if name == "" {
		return nil
	}
	var found []string
	var field reflect.Value
	for _, s := range rules {
		eachRule(reflect.ValueOf(s).Elem(), func(full string, f reflect.Value) {
			if MatchRule(full, name) && !slices.Contains(found, full) {
				found, field = append(found, full), f
			}
		})
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("there is no rule %q to break", name)
	case 1:
		field.SetBool(true)
		return nil
	}
	return fmt.Errorf("rule %q may be %s", name, strings.Join(found, " or "))
}

// eachRule calls each with the full name and the field of every rule in a
// struct.
func eachRule(s reflect.Value, each func(name string, field reflect.Value)) {
	t := s.Type()
	pkg := t.PkgPath()
	pkg = pkg[strings.LastIndexByte(pkg, '/')+1:]
	for i := range t.NumField() {
		switch f := s.Field(i); f.Kind() {
		case reflect.Struct:
			eachRule(f, each)
		case reflect.Bool:
			each(pkg+"."+t.Field(i).Name, f)
		}
	}
}
