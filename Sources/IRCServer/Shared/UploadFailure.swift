/// Why an upload came to nothing.
public enum UploadFailure: Error, Equatable, Sendable {
    /// The account may enter no room, or not the one that was named.
    case notAllowed
    /// In bytes; nil: only the backend knows.
    case tooLarge(limit: Int?)
    case unsupportedType
    /// The backend's trouble; a sentence without a full stop.
    case failed(String)
    /// It could not be stored here.
    case notStored
}
