"""What a checking program found: counts, a line per finding, and how it closes."""


class Tally:
    def __init__(self):
        self.findings, self.checks = [], 0

    def check(self, ok, *message):
        self.checks += 1
        if not ok:
            self.findings.append(" ".join(str(m) for m in message))

    def close(self):
        """Prints the findings and "N passed, N failed"; the exit status."""
        for finding in self.findings:
            print(finding)
        print(f"{self.checks - len(self.findings)} passed, {len(self.findings)} failed")
        return 1 if self.findings else 0
