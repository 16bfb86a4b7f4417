// SPDX-License-Identifier: GPL-2.0

// fetch FILE URL: a download by a statically linked program. No library can be put before its system calls.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func fetch(name, url string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, answer.Body); err != nil {
		return err
	}
	return file.Close()
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: fetch FILE URL")
		os.Exit(2)
	}
	if err := fetch(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}
