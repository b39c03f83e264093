import Configuration

/// Of "pencil". Source: RFC 7677 §3.
package let examplePasswordHash =
    "$scram-sha-256$4096$W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    + "$wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

/// A machine made of plain values.
package func testEnvironment(
    _ files: [String: String] = [:], variables: [String: String] = [:], hostName: String = "edge.example.org"
) -> ConfigurationEnvironment {
    ConfigurationEnvironment(variables: variables, hostName: hostName) { path in
        files[path].map { .success(Array($0.utf8)) } ?? .failure(.notFound)
    }
}

/// Loads `toml` as `chatbridge.toml`.
package func load(
    _ toml: String?, variables: [String: String] = [:], files: [String: String] = [:],
    request: ConfigurationRequest = ConfigurationRequest()
) throws(ConfigurationError) -> Configuration {
    var files = files
    files["chatbridge.toml"] = toml
    return try ConfigurationLoader.load(request, from: testEnvironment(files, variables: variables)).configuration
}

/// The output of `check`, one line a problem; empty: the text loads.
package func problems(
    _ toml: String?, variables: [String: String] = [:], files: [String: String] = [:],
    request: ConfigurationRequest = ConfigurationRequest()
) -> [String] {
    do {
        _ = try load(toml, variables: variables, files: files, request: request)
        return []
    } catch {
        return error.problems.map(\.description)
    }
}

/// The smallest file that loads, with `text` below.
package func withRoom(_ text: String) -> String {
    "rooms = [{ name = \"lobby\", url = \"ws://127.0.0.1:8080/chat\" }]\n" + text
}

/// One problem: a text below ``withRoom(_:)``'s first line, and its message.
package struct ProblemCase: CustomStringConvertible, Sendable {
    package var description: String
    package var toml: String
    package var expected: String

    package init(_ name: String, _ toml: String, _ expected: String) {
        description = name
        self.toml = toml
        self.expected = expected
    }
}
