import ChatModel
import Digests

/// The places that a message has passed on its way through bridges, oldest first.
///
/// Two rules end every loop: a mirror does not post what has passed it, and a room does not take what has passed the room.
/// The chain goes along as a tag (on IRC and in the log), as a list of texts (in the JSON form), or as an invisible mark in
/// the text (everywhere else).
package struct OriginChain: Hashable, Sendable {
    /// A room or a mirror of one installation.
    package struct Place: Hashable, Sendable {
        /// 24 bits.
        package var rawValue: UInt32

        /// - Parameter installation: the random id of the installation, of which the place reveals nothing.
        package init(room: String, of installation: String) {
            self.init(digesting: "\(installation)\nroom\n\(room)")
        }

        package init(mirror: String, of installation: String) {
            self.init(digesting: "\(installation)\nmirror\n\(mirror)")
        }

        private init(digesting text: String) {
            rawValue = SHA256.hash(Array(text.utf8)).prefix(3).reduce(0) { $0 << 8 | UInt32($1) }
        }

        /// Six hexadecimal digits.
        package init?(_ text: some StringProtocol) {
            guard text.utf8.count == Self.digitCount, let value = UInt32(text, radix: 16), !text.hasPrefix("+") else {
                return nil
            }
            rawValue = value
        }

        package var text: String {
            let digits = String(rawValue, radix: 16)
            return String(repeating: "0", count: Self.digitCount - digits.utf8.count) + digits
        }

        static let digitCount = 6
    }

    /// A message that has passed more places is not passed on.
    package static let maxPlaces = 8
    /// The client-only tag with the chain, as ``text``.
    package static let tag = "+chatbridge/origin"
    /// The client-only tag with the id under which the message was said first.
    package static let firstTag = "+chatbridge/first"

    package private(set) var places: [Place] = []

    package init() {}

    package init(_ places: some Sequence<Place>) { self.places = Array(places) }

    package var isEmpty: Bool { places.isEmpty }
    package var isFull: Bool { places.count >= Self.maxPlaces }

    package func contains(_ place: Place) -> Bool { places.contains(place) }

    /// The chain behind one more place. A place counts once.
    package func passing(_ place: Place) -> OriginChain {
        contains(place) ? self : OriginChain(places + [place])
    }

    // MARK: - As a tag

    /// The places, separated by commas. Anything else is no chain, and longer ones are cut at the limit.
    package init?(_ text: String) {
        for part in text.split(separator: ",", omittingEmptySubsequences: false).prefix(Self.maxPlaces) {
            guard let place = Place(part) else { return nil }
            places.append(place)
        }
    }

    package var text: String { places.map(\.text).joined(separator: ",") }

    package init(tags: [StoredTag]) {
        self = tags.first { $0.name == Self.tag }?.value.flatMap { OriginChain($0) } ?? OriginChain()
    }

    /// Nil for a chain without places.
    package var storedTag: StoredTag? { isEmpty ? nil : StoredTag(name: Self.tag, value: text) }

    // MARK: - As an invisible mark

    // An invisible separator, and behind it one variation selector for each hexadecimal digit: neither has a width or a
    // shape of its own, and the selectors belong to the separator.

    private static let separator: Unicode.Scalar = "\u{2063}"
    private static let firstSelector: UInt32 = 0xFE00

    /// Empty for a chain without places.
    package var mark: String {
        guard !isEmpty else { return "" }
        var scalars = String.UnicodeScalarView([Self.separator])
        for place in places {
            for shift in stride(from: 4 * (Place.digitCount - 1), through: 0, by: -4) {
                guard let selector = Unicode.Scalar(Self.firstSelector + (place.rawValue >> UInt32(shift)) & 15) else {
                    continue
                }
                scalars.append(selector)
            }
        }
        return String(scalars)
    }

    /// A text without its marks, and the chain of all of them.
    package static func split(_ text: String) -> (text: String, chain: OriginChain) {
        guard text.unicodeScalars.contains(separator) else { return (text, OriginChain()) }
        var (kept, digits) = (String.UnicodeScalarView(), [UInt32]())
        var chain = OriginChain()
        var isMark = false
        func end() {
            for start in stride(from: 0, to: digits.count - Place.digitCount + 1, by: Place.digitCount)
            where !chain.isFull {
                let value = digits[start..<(start + Place.digitCount)].reduce(0) { $0 << 4 | $1 }
                chain = chain.passing(Place(bits: value))
            }
            // A separator that marks nothing is the writer's.
            if digits.isEmpty, isMark { kept.append(separator) }
            digits = []
            isMark = false
        }
        for scalar in text.unicodeScalars {
            if scalar == separator {
                end()
                isMark = true
            } else if isMark, (firstSelector..<(firstSelector + 16)).contains(scalar.value) {
                digits.append(scalar.value - firstSelector)
            } else {
                end()
                kept.append(scalar)
            }
        }
        end()
        return (String(kept), chain)
    }
}

extension OriginChain.Place {
    fileprivate init(bits: UInt32) { rawValue = bits }
}
