import BridgeTypes
import ChatModel
import Configuration
import HTTPProtocol
import IRCProtocol
import Mirrors
import WireBytes

/// A mirror of the configuration, its secrets read.
struct MirrorPlan: Equatable, Sendable {
    let configuration: MirrorConfiguration
    /// Nil: nothing goes out to a tool.
    let url: HTTPURL?
    let secret: MirrorSecret?
    let place: OriginChain.Place
    let proxies: HTTPProxyRules
    let filter: MirrorFilter

    init(
        _ configuration: MirrorConfiguration, installation: String, environment: ConfigurationEnvironment
    ) throws(StartError) {
        self.configuration = configuration
        func read(_ source: SecretSource?) throws(StartError) -> String? {
            guard let source else { return nil }
            do throws(InterpolationError) {
                return try source.read(environment).revealed
            } catch {
                throw StartError(
                    description: "a secret of the mirror \(configuration.name) cannot be read: \(error.message)")
            }
        }
        let address = try read(configuration.url)
        url = address.flatMap { MirrorConfiguration.url($0) }
        secret = try read(configuration.secret).map { MirrorSecret(Array($0.utf8)) }
        place = OriginChain.Place(mirror: configuration.name, of: installation)
        proxies = HTTPProxyRules(environment: environment.variables)
        var filter = MirrorFilter()
        filter.events = Set(configuration.events.compactMap { MirrorFilter.Event(rawValue: $0.rawValue) })
        filter.ignoredNicks = configuration.ignore.nicks.map { IRCMask($0) }
        filter.ignoredTexts = configuration.ignore.matching.map { IRCMask($0) }
        self.filter = filter
    }

    /// Proxies are of the process.
    static func == (a: Self, b: Self) -> Bool {
        a.configuration == b.configuration && a.url == b.url && a.secret == b.secret && a.place == b.place
    }

    var name: String { configuration.name }

    /// Nil: another room.
    var form: (any MirrorForm)? { configuration.kind.flatMap { MirrorTool(rawValue: $0.rawValue) }?.form }

    var wording: MirrorWording {
        var wording = MirrorWording()
        wording.username = configuration.username
        wording.avatarURL = configuration.avatarURL
        wording.defusesMentions = configuration.mentions == .escape
        return wording
    }

    var queue: MirrorQueue.Settings {
        var settings = MirrorQueue.Settings(name: name)
        settings.maxAge = configuration.retry.maxAge
        settings.maxPosts = min(configuration.batch.maxMessages, form?.traits.postsAtOnce ?? 1)
        settings.maxWait = configuration.batch.maxWait
        return settings
    }

    /// The rooms that are read, each list with the room that is spoken in; nil: the tool.
    var legs: [(rooms: [String], to: String?)] {
        guard configuration.kind == .room else { return url == nil ? [] : [(configuration.rooms, nil)] }
        return configuration.rooms.flatMap { room in
            (configuration.goesOut ? [([room], configuration.to)] : [])
                + (configuration.comesIn ? [([configuration.to], room)] : [])
        }
    }
}
