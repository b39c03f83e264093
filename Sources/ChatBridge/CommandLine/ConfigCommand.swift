import Configuration

/// A word of `chatbridge config`.
enum ConfigOptions: Equatable, Sendable {
    case standard
    case show
    case explain(key: String)

    static let words = ["default", "show", "explain"]
}

extension OfflineCommands {
    /// `chatbridge config`: the example configuration, the one that counts, or what a key means.
    static func config(
        _ global: GlobalOptions, _ options: ConfigOptions, environment: ConfigurationEnvironment, output: Output,
        errors: Output
    ) -> Int32 {
        switch options {
        case .standard: output(ExampleConfiguration.text)
        case .show:
            do throws(ConfigurationError) {
                let loaded = try ConfigurationLoader.load(global.request(), from: environment)
                output(
                    ConfigurationPrinter.text(loaded.configuration) {
                        loaded.origins.text(of: $0, in: loaded.configuration)
                    })
            } catch {
                errors(error.description + "\n")
                return ExitCode.configuration
            }
        case .explain(let key):
            let topics = ConfigurationTopic.named(key)
            guard topics.count == 1, let topic = topics.first else {
                let hint = ConfigurationTopic.hint(for: key)
                errors(
                    topics.isEmpty
                        ? "chatbridge: there is no key \"\(key)\"\(hint)\n"
                        : "chatbridge: \"\(key)\" may be \(topics.map(\.path).joined(separator: ", "))\n")
                return ExitCode.usage
            }
            output((topic.lines + now(topic, global, environment)).map { $0 + "\n" }.joined())
        }
        return ExitCode.ok
    }

    /// Where the key is set; without rooms there is still something to say.
    private static func now(
        _ topic: ConfigurationTopic, _ global: GlobalOptions, _ environment: ConfigurationEnvironment
    ) -> [String] {
        do throws(ConfigurationError) {
            let loaded = try ConfigurationLoader.load(global.request(needsRooms: false), from: environment)
            return topic.current(loaded).enumerated().map {
                ($0.offset == 0 ? "  now       " : "            ") + $0.element
            }
        } catch {
            return ["  now       unknown: the configuration does not load, see \"chatbridge check\""]
        }
    }
}
