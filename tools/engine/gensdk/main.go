// Command gensdk writes a Python package from a Pulumi package schema.
//
//	gensdk SCHEMA.json FOLDER
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gensdk SCHEMA.json FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gensdk:", err)
		os.Exit(1)
	}
}

func generate(path, folder string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	// types that only data sources used are gone from a reduced schema
	options := schema.ValidationOptions{AllowDanglingReferences: true}
	bound, diagnostics, err := schema.BindSpec(spec, schema.NewNullLoader(), options)
	if err != nil {
		return err
	}
	if diagnostics.HasErrors() {
		return diagnostics
	}
	files, err := python.GeneratePackage("vela", bound, nil, nil)
	if err != nil {
		return err
	}
	for name, content := range files {
		target := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
