import Configuration
import DescribedDialects
import Glibc
import HTTPProtocol
import JSONText
import Learning
import Transport
import WireBytes

struct LearnOptions: Equatable, Sendable {
    /// The backend's socket.
    var url: String?
    /// A recording, instead of listening.
    var frames: String?
    /// Where the app connects to, as `127.0.0.1:9000`.
    var proxy: String?
    /// Header fields of the handshake; ``LearnMark/token`` stands for the token in them, in `url` and in `sends`.
    var headers: [LearnHeader] = []
    var tokenFile: String?
    /// Frames to send once connected.
    var sends: [String] = []
    var name = "learned"
    var directory = "."
}

/// `chatbridge learn`: proposes the description of a backend from what its own app and it say to each other.
enum LearnCommand {
    typealias Output = OfflineCommands.Output

    /// A browser's recording has pictures and scripts too.
    private static let maxFileBytes = 256 * 1024 * 1024

    static func run(
        _ options: LearnOptions, environment: ConfigurationEnvironment, output: @escaping @Sendable (String) -> Void,
        errors: @escaping @Sendable (String) -> Void
    ) async -> Int32 {
        var options = options
        if options.tokenFile == nil, let path = environment.variables[LearnAccess.fileVariable], !path.isEmpty {
            options.tokenFile = path
        }
        let files = LearnedFiles(options)
        if let taken = files.taken {
            errors("chatbridge: there is a file \"\(taken)\" already; --name or --out choose another\n")
            return ExitCode.cannotCreate
        }
        let recording: Recording
        if let path = options.frames {
            guard case .success(let bytes) = environment.readFile(path == "-" ? "/dev/stdin" : path) else {
                errors("chatbridge: there is no file \"\(path)\", or it cannot be read\n")
                return ExitCode.noInput
            }
            guard bytes.count <= maxFileBytes else {
                errors("chatbridge: \(path) is larger than \(maxFileBytes / 1024 / 1024) MiB\n")
                return ExitCode.noInput
            }
            recording = Recording(parsing: bytes, limits: JSONLimits(maxBytes: maxFileBytes))
        } else {
            do throws(StartError) {
                recording = try await record(options, environment, output)
            } catch {
                errors("chatbridge: \(error)\n")
                return ExitCode.unavailable
            }
        }
        guard let proposal = Learner.propose(recording) else {
            errors(
                "chatbridge: no frame came in that has JSON; of \(recording.frames.count) frames "
                    + "\(recording.frames.count(where: \.isSent)) were sent by the app\n")
            return ExitCode.data
        }
        do throws(StartError) {
            try files.write(proposal, recording)
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.cannotCreate
        }
        output(files.report(proposal, recording))
        return ExitCode.ok
    }

    // MARK: - Recording

    /// Listens, and asks for one step after another.
    private static func record(
        _ options: LearnOptions, _ environment: ConfigurationEnvironment,
        _ output: @escaping @Sendable (String) -> Void
    ) async throws(StartError) -> Recording {
        let access = options.proxy == nil ? try LearnAccess(options, environment: environment) : nil
        let url: HTTPURL
        do {
            url = try HTTPURL(parsing: access?.url.sent ?? options.url ?? "")
        } catch {
            throw StartError(description: "\"\(options.url ?? "")\" is no address of a socket: \(error.sentence)")
        }
        do {
            let noted: @Sendable (String) -> Void = { output("  (\($0))\n") }
            let loop = try NetworkLoop.start(name: "learn")
            defer { loop.stop() }
            if let access {
                let agent = "chatbridge/\(BuildInformation.version)"
                try await loop.run { transport throws(StartError) in
                    let source = try LearnClient(url, access, userAgent: agent, noted: noted)
                    transport.attach(source)
                    source.begin(transport)
                }
                output("What the app itself sends is not seen so; --proxy or --frames see both.\n")
            } else if let proxy = options.proxy {
                let colon = proxy.lastIndex(of: ":") ?? proxy.endIndex
                let host = String(proxy[..<colon])
                guard let port = Int(proxy[colon...].dropFirst()), !host.isEmpty else {
                    throw StartError(description: "--proxy \"\(proxy)\" is no address and port, as 127.0.0.1:9000")
                }
                let address = try await loop.run { transport throws(TransportError) in
                    let source = LearnProxy(to: url, noted: noted)
                    transport.attach(source)
                    return try transport.listen(ListenOptions(host: host, port: port)).1
                }
                output("Let the app connect to ws://\(address) or http://\(address) instead of \(url.hostHeader).\n")
            }
            output("Do what follows, one after another, and press Enter after each; Ctrl-D ends it.\n")
            for step in LearnStep.allCases {
                let isOver = await loop.run {
                    let source = $0.delegate as? RecordingSource
                    source?.mark(step)
                    return source?.isOver ?? true
                }
                if isOver { break }
                output("\(step.request): ")
                guard readLine() != nil else { break }
            }
            return await loop.run { ($0.delegate as? RecordingSource)?.recording ?? Recording() }
        } catch let error as StartError {
            throw error
        } catch {
            throw StartError(description: "\(error)")
        }
    }
}

/// The three files of a proposal, none of which replaces another.
struct LearnedFiles {
    let name: String
    let directory: String
    /// Those of `--header` that show no token.
    private let headers: [LearnHeader]
    private let tokenFile: String

    init(_ options: LearnOptions) {
        name = options.name
        directory = options.directory
        tokenFile = options.tokenFile ?? (directory == "." ? "token" : "\(directory)/token")
        headers = options.headers.filter { RecordedHeader(name: $0.name, value: $0.value) == nil }
    }

    var description: String { "\(directory)/\(name).json" }
    var frames: String { "\(directory)/\(name).frames.jsonl" }
    var configuration: String { "\(directory)/\(name).toml" }

    /// One that is there already.
    var taken: String? { [description, frames, configuration].first { access($0, F_OK) == 0 } }

    func write(_ proposal: Proposal, _ recording: Recording) throws(StartError) {
        for (path, text) in [
            (description, proposal.text), (frames, recording.lines), (configuration, toml(proposal)),
        ] {
            // Frames may have tokens in them.
            let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw StartError(description: "\(path): \(String(cString: strerror(errno)))") }
            defer { _ = close(descriptor) }
            guard StateFile.write(Array(text.utf8), to: descriptor) else {
                throw StartError(description: "\(path): \(String(cString: strerror(errno)))")
            }
        }
    }

    /// The channel's name: the room's title or else its id where that is fit for one, else the dialect's.
    private func channel(_ proposal: Proposal) -> String {
        let title = proposal.roomTitle.map { $0.split(separator: " ").joined(separator: "-") }
        let room = proposal.room.map {
            String($0[($0.lastIndex { ":/#".contains($0) }.map($0.index(after:)) ?? $0.startIndex)...])
        }
        return [title, room].lazy.compactMap(\.self).first(where: Self.isChannelName)?.lowercased() ?? name
    }

    private static func isChannelName(_ text: String) -> Bool {
        text.utf8.count <= 32 && text.utf8.first.map(ASCII.isLetter) == true
            && text.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || "-_".utf8.contains($0) }
    }

    func toml(_ proposal: Proposal) -> String {
        let channel = channel(proposal)
        func string(_ text: String) -> String { JSONValue.string(text.replacing("$", with: "$$")).text }
        var lines = [
            "# Proposed by chatbridge learn.", "[dialects.\(name)]", "file = \"\(name).json\"", "", "[[rooms]]",
            "name = \(string(channel))                 # the channel: #\(channel)", "dialect = \"\(name)\"",
            "url = \(string(proposal.url ?? "wss://chat.example.com/ws"))",
        ]
        if let room = proposal.room { lines.append("upstream_room = \(string(room))") }
        if !headers.isEmpty {
            let fields = headers.map { "\(string($0.name)) = \(string($0.value))" }
            lines.append("headers = { \(fields.joined(separator: ", ")) }")
        }
        var shown: [String]? =
            switch proposal.token {
            case .none: nil
            case .frame: ["type = \"message\""]
            case .query(let field): ["type = \"query\"", "param = \(string(field))"]
            case .header(let header)
            where header.name.lowercased() == "authorization" && header.format == "Bearer {token}":
                ["type = \"bearer\""]
            case .header(let header):
                ["type = \"header\"", "name = \(string(header.name))", "format = \(string(header.format))"]
            }
        let file = string(tokenFile)
        shown?.append("token_file = \(file)")
        lines.append(
            shown.map { "auth = { \($0.joined(separator: ", ")) }      # a file with the token" }
                ?? "# auth = { type = \"bearer\", token_file = \(file) }")
        return lines.map { $0 + "\n" }.joined()
    }

    func report(_ proposal: Proposal, _ recording: Recording) -> String {
        var lines = proposal.reasons.map { "- \($0)" }
        lines.append("")
        lines.append("\(description)   the description, each guess with its reason; correct it there")
        lines.append("\(configuration)   a configuration that uses it")
        lines.append("\(frames)   the recording, \(recording.frames.count) frames")
        lines.append("")
        let check = "chatbridge check --config \(configuration)"
        lines.append(
            proposal.hasMessages
                ? "Next: \(check) --frame \(frames), then \(check) --connect"
                : "No message came in, so this description shows none. Next: learn again in a room in which something is said "
                    + "meanwhile, by you and by another person")
        return lines.map { $0 + "\n" }.joined()
    }
}
