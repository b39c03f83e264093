import JSONText

/// Compares transcripts line by line, frames as JSON.
enum TranscriptDiff {
    /// Lines of agreement shown around a difference.
    private static let contextLines = 3

    /// The difference as a reader wants it (`-` written, `+` happened), or nil when there is none.
    static func describe(expected: [String], actual: [String]) -> String? {
        let script = editScript(expected, actual)
        guard script.contains(where: { $0.mark != " " }) else { return nil }
        let interesting = script.indices.filter { script[$0].mark != " " }
        var shown: [String] = []
        var last = -1
        for index in script.indices
        where interesting.contains(where: { abs($0 - index) <= contextLines }) {
            if index != last + 1 { shown.append("  …") }
            shown.append("\(script[index].mark) \(script[index].line)")
            last = index
        }
        return "the transcript came out differently (- written, + happened):\n" + shown.joined(separator: "\n")
    }

    /// The longest common subsequence, as a list of common, missing and additional lines.
    private static func editScript(_ a: [String], _ b: [String]) -> [(mark: String, line: String)] {
        var lengths = Array(repeating: Array(repeating: 0, count: b.count + 1), count: a.count + 1)
        for i in a.indices.reversed() {
            for j in b.indices.reversed() {
                lengths[i][j] =
                    isSame(a[i], b[j]) ? lengths[i + 1][j + 1] + 1 : max(lengths[i + 1][j], lengths[i][j + 1])
            }
        }
        var script: [(String, String)] = []
        var i = 0
        var j = 0
        while i < a.count || j < b.count {
            if i < a.count, j < b.count, isSame(a[i], b[j]) {
                script.append((" ", a[i]))
                i += 1
                j += 1
            } else if i < a.count, j == b.count || lengths[i + 1][j] >= lengths[i][j + 1] {
                script.append(("-", a[i]))
                i += 1
            } else {
                script.append(("+", b[j]))
                j += 1
            }
        }
        return script
    }

    static func isSame(_ expected: String, _ actual: String) -> Bool {
        if expected == actual { return expected.utf8.elementsEqual(actual.utf8) }
        guard expected.hasPrefix("U:"), let a = expected.firstRange(of: "> {"), let b = actual.firstRange(of: "> {"),
            expected[..<a.lowerBound] == actual[..<b.lowerBound],
            let wanted = try? JSONValue(parsing: "{" + expected[a.upperBound...]),
            let got = try? JSONValue(parsing: "{" + actual[b.upperBound...])
        else { return false }
        return isSame(wanted, got)
    }

    private static func isSame(_ wanted: JSONValue, _ got: JSONValue) -> Bool {
        switch (wanted, got) {
        case (.string("*"), _): return true
        case (.object(let a), .object(let b)):
            return a.count == b.count
                && a.allSatisfy { member in got[member.key].map { isSame(member.value, $0) } ?? false }
        case (.array(let a), .array(let b)):
            return a.count == b.count && zip(a, b).allSatisfy { isSame($0, $1) }
        default: return wanted == got
        }
    }
}
