import BridgeTypes
import ChatModel
import Configuration
import HTTPProtocol
import Mirrors
import Transport

extension OfflineCommands {
    /// `chatbridge mirrors test NAME`: what a mirror makes of a message, by its configuration alone; nothing is posted.
    static func testMirror(
        _ name: String, _ global: GlobalOptions, environment: ConfigurationEnvironment, output: Output, errors: Output
    ) -> Int32 {
        do {
            let configuration = try ConfigurationLoader.load(global.request(), from: environment).configuration
            guard let mirror = configuration.mirrors.first(where: { $0.name == name }) else {
                let names = configuration.mirrors.map(\.name)
                let known = names.isEmpty ? "" : "; there are: \(names.joined(separator: ", "))"
                errors(
                    "chatbridge: there is no mirror \"\(name)\"\(NearestName.hint(for: name, among: names))\(known)\n")
                return ExitCode.data
            }
            let plan = try MirrorPlan(mirror, installation: "", environment: environment)
            for room in mirror.roomNames {
                let channel = configuration.rooms.first { $0.name == room }?.channel ?? ""
                output(lines(plan, room: room, channel: channel).map { $0 + "\n" }.joined())
            }
            return ExitCode.ok
        } catch let error as ConfigurationError {
            errors("\(error)\n")
            return ExitCode.configuration
        } catch {
            errors("chatbridge: \(error)\n")
            return ExitCode.configuration
        }
    }

    private static func lines(_ plan: MirrorPlan, room: String, channel: String) -> [String] {
        var lines = ["\(room) (\(channel)): \(plan.configuration.events.map(\.rawValue).joined(separator: ", "))"]
        let post = MirrorPost(
            .message(MarkedText("This is how \u{2}a message\u{2} from \(channel) looks, @here.", as: .irc)),
            room: room, channel: channel, msgid: "example",
            at: ChatTimestamp(milliseconds: SystemClock.wallMilliseconds()),
            speaker: MirrorPost.Speaker(nick: "alice"),
            origin: OriginChain().passing(OriginChain.Place(room: room, of: "")))
        if let network = plan.network { return lines + networkLines(plan, network, post) }
        if let form = plan.form, let url = plan.url {
            // Any reader of the whole address can post there.
            for request in form.requests(for: [post], plan.wording) {
                lines.append("out: \(request.method) \(url.scheme)://\(url.hostHeader)/…\(request.pathSuffix)")
                lines.append(String(decoding: request.body, as: UTF8.self))
            }
        } else if plan.configuration.goesOut {
            lines.append("out: to the room \(plan.configuration.to)")
        } else {
            lines.append("out: nothing, there is no url")
        }
        let nick = plan.configuration.nickTemplate.replacing("{user}", with: "ada")
        if plan.configuration.kind == .room {
            lines.append(
                plan.configuration.comesIn ? "in: from the room \(plan.configuration.to), as \(nick)" : "in: nothing")
        } else if plan.configuration.comesIn {
            lines.append("in: POST \(plan.configuration.path), as \(nick)")
        } else {
            lines.append("in: nothing, there is no path")
        }
        return lines
    }

    private static func networkLines(_ plan: MirrorPlan, _ network: NetworkPlan, _ post: MirrorPost) -> [String] {
        let channel = plan.configuration.channels.first { $0.room == post.room }?.channel ?? ""
        let place = "\(channel) at \(network.address)"
        var lines = ["in: nothing"]
        if plan.configuration.comesIn {
            lines = ["in: from \(place), as \(plan.configuration.nickTemplate.replacing("{user}", with: "ada"))"]
        }
        guard plan.configuration.goesOut else { return ["out: nothing"] + lines }
        return ["out: to \(place), as \(network.settings.nick)"]
            + IRCNetwork.sample(post, to: channel, network.settings)
            + lines
    }
}
