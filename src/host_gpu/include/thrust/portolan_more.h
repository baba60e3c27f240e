#pragma once

// Thrust's iterators over several ranges, complex numbers, and algorithms of the second rank.

#include <complex>

#include "thrust/portolan_thrust.h"

namespace thrust {

// Elements are tuples of references: what is assigned to one goes to the ranges.
template <typename... Iterators>
class ZipIterator {
 public:
  using value_type = std::tuple<Value<Iterators>...>;
  using reference = std::tuple<decltype(*std::declval<Iterators&>())...>;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;
  ZipIterator() = default;
  explicit ZipIterator(std::tuple<Iterators...> all) : all_(all) {}
  reference operator*() const {
    return std::apply([](auto&... it) { return reference(*it...); }, all_);
  }
  reference operator[](difference_type i) const { return *(*this + i); }
  ZipIterator& operator+=(difference_type i) {
    std::apply([&](auto&... it) { ((it += i), ...); }, all_);
    return *this;
  }
  ZipIterator& operator-=(difference_type i) { return *this += -i; }
  ZipIterator& operator++() { return *this += 1; }
  ZipIterator& operator--() { return *this += -1; }
  ZipIterator operator++(int) {
    ZipIterator before = *this;
    ++*this;
    return before;
  }
  ZipIterator operator--(int) {
    ZipIterator before = *this;
    --*this;
    return before;
  }
  ZipIterator operator+(difference_type i) const { return ZipIterator(*this) += i; }
  ZipIterator operator-(difference_type i) const { return ZipIterator(*this) += -i; }
  difference_type operator-(const ZipIterator& other) const { return std::get<0>(all_) - std::get<0>(other.all_); }
  bool operator==(const ZipIterator& other) const { return std::get<0>(all_) == std::get<0>(other.all_); }
  bool operator!=(const ZipIterator& other) const { return !(*this == other); }
  bool operator<(const ZipIterator& other) const { return *this - other < 0; }
  const std::tuple<Iterators...>& get_iterator_tuple() const { return all_; }

 private:
  mutable std::tuple<Iterators...> all_;
};
template <typename Tuple>
struct ZipOf;
template <typename... Iterators>
struct ZipOf<std::tuple<Iterators...>> {
  using type = ZipIterator<Iterators...>;
};
template <typename Tuple>
using zip_iterator = typename ZipOf<Tuple>::type;
template <typename... Iterators>
ZipIterator<Iterators...> make_zip_iterator(std::tuple<Iterators...> all) {
  return ZipIterator<Iterators...>(all);
}
template <typename First, typename... Iterators>
requires(!requires {
  typename ZipOf<First>::type;
}) ZipIterator<First, Iterators...> make_zip_iterator(First first, Iterators... rest) {
  return ZipIterator<First, Iterators...>(std::tuple<First, Iterators...>(first, rest...));
}
template <typename F>
struct ZipFunction {
  F function;
  template <typename Tuple>
  auto operator()(Tuple&& values) const {
    return std::apply(function, std::forward<Tuple>(values));
  }
};
template <typename F>
ZipFunction<F> make_zip_function(F function) {
  return {function};
}

// values[indices[i]], to read and to write.
template <typename Values, typename Indices>
class permutation_iterator {
 public:
  using value_type = Value<Values>;
  using reference = decltype(*std::declval<Values&>());
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;
  permutation_iterator(Values values, Indices indices) : values_(values), indices_(indices) {}
  reference operator*() const { return *(values_ + static_cast<difference_type>(*indices_)); }
  reference operator[](difference_type i) const { return *(*this + i); }
  permutation_iterator& operator+=(difference_type i) { return indices_ += i, *this; }
  permutation_iterator& operator++() { return *this += 1; }
  permutation_iterator operator+(difference_type i) const { return permutation_iterator(values_, indices_ + i); }
  permutation_iterator operator-(difference_type i) const { return permutation_iterator(values_, indices_ - i); }
  difference_type operator-(const permutation_iterator& other) const { return indices_ - other.indices_; }
  bool operator==(const permutation_iterator& other) const { return indices_ == other.indices_; }
  bool operator!=(const permutation_iterator& other) const { return !(*this == other); }

 private:
  Values values_;
  Indices indices_;
};
template <typename Values, typename Indices>
permutation_iterator<Values, Indices> make_permutation_iterator(Values values, Indices indices) {
  return {values, indices};
}

struct Discarded {
  template <typename T>
  const Discarded& operator=(const T&) const {
    return *this;
  }
};
template <typename = void>
class discard_iterator {
 public:
  using value_type = Discarded;
  using reference = Discarded;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;
  explicit discard_iterator(difference_type at = 0) : at_(at) {}
  Discarded operator*() const { return {}; }
  Discarded operator[](difference_type) const { return {}; }
  discard_iterator& operator++() { return ++at_, *this; }
  discard_iterator operator++(int) { return discard_iterator(at_++); }
  discard_iterator operator+(difference_type i) const { return discard_iterator(at_ + i); }
  difference_type operator-(const discard_iterator& other) const { return at_ - other.at_; }
  bool operator==(const discard_iterator& other) const { return at_ == other.at_; }

 private:
  difference_type at_;
};
inline discard_iterator<> make_discard_iterator() { return discard_iterator<>(); }

template <typename T>
using complex = std::complex<T>;
using std::abs;
using std::arg;
using std::conj;
using std::exp;
using std::norm;
using std::polar;
using std::pow;
using std::sqrt;

template <typename I>
struct iterator_difference {
  using type = std::ptrdiff_t;
};
template <typename I>
struct iterator_value {
  using type = Value<I>;
};
template <typename I>
using iterator_traits = std::iterator_traits<I>;

template <NoPolicy K, typename V, typename E>
std::pair<K, V> unique_by_key(K first, K last, V values, E equal) {
  if (first == last) return {first, values};
  K keys_out = first;
  V values_out = values;
  for (++first, ++values; first != last; ++first, ++values) {
    if (equal(*keys_out, *first)) continue;
    ++keys_out, ++values_out;
    *keys_out = *first;
    *values_out = *values;
  }
  return {++keys_out, ++values_out};
}
template <NoPolicy K, typename V>
std::pair<K, V> unique_by_key(K first, K last, V values) {
  return thrust::unique_by_key(first, last, values, std::equal_to<>());
}
template <NoPolicy K, typename V, typename KO, typename VO>
std::pair<KO, VO> unique_by_key_copy(K first, K last, V values, KO keys_out, VO values_out) {
  while (first != last) {
    const Value<K> key = *first;
    *keys_out = key, ++keys_out;
    *values_out = *values, ++values_out;
    while (first != last && *first == key) ++first, ++values;
  }
  return {keys_out, values_out};
}
template <NoPolicy I, typename O, typename... A>
O unique_copy(I first, I last, O out, A... equal) {
  return std::unique_copy(first, last, out, equal...);
}
template <NoPolicy I, typename T>
I remove(I first, I last, const T& value) {
  return std::remove(first, last, value);
}
template <NoPolicy I, typename S, typename F>
I remove_if(I first, I last, S stencil, F predicate) {
  I out = first;
  for (; first != last; ++first, ++stencil) {
    if (!predicate(*stencil)) *out = *first, ++out;
  }
  return out;
}
template <NoPolicy I, typename O, typename F>
O remove_copy_if(I first, I last, O out, F predicate) {
  return std::remove_copy_if(first, last, out, predicate);
}
template <NoPolicy I, typename F, typename T>
void replace_if(I first, I last, F predicate, const T& value) {
  std::replace_if(first, last, predicate, value);
}
template <NoPolicy I, typename S, typename F, typename T>
void replace_if(I first, I last, S stencil, F predicate, const T& value) {
  for (; first != last; ++first, ++stencil) {
    if (predicate(*stencil)) *first = value;
  }
}
template <NoPolicy I, typename O, typename F, typename P>
O transform_if(I first, I last, O out, F op, P predicate) {
  for (; first != last; ++first, ++out) {
    if (predicate(*first)) *out = op(*first);
  }
  return out;
}
template <NoPolicy I, typename S, typename O, typename F, typename P>
O transform_if(I first, I last, S stencil, O out, F op, P predicate) {
  for (; first != last; ++first, ++stencil, ++out) {
    if (predicate(*stencil)) *out = op(*first);
  }
  return out;
}
template <NoPolicy I, typename M, typename S, typename O>
void scatter_if(I first, I last, M map, S stencil, O out) {
  for (; first != last; ++first, ++map, ++stencil) {
    if (*stencil) out[*map] = *first;
  }
}
template <NoPolicy I, typename J, typename T, typename F, typename G>
T inner_product(I first, I last, J other, T initial, F add, G multiply) {
  return std::inner_product(first, last, other, initial, add, multiply);
}
template <NoPolicy I, typename O, typename F, typename G>
O transform_inclusive_scan(I first, I last, O out, F transform, G op) {
  if (first == last) return out;
  auto sum = transform(*first);
  *out = sum, ++out;
  for (++first; first != last; ++first, ++out) *out = sum = op(sum, transform(*first));
  return out;
}
template <NoPolicy I, typename O, typename F, typename T, typename G>
O transform_exclusive_scan(I first, I last, O out, F transform, T initial, G op) {
  for (; first != last; ++first, ++out) {
    const auto value = transform(*first);
    *out = initial;
    initial = op(initial, value);
  }
  return out;
}
template <NoPolicy K, typename V, typename O>
O inclusive_scan_by_key(K first, K last, V values, O out) {
  for (bool start = true; first != last; start = false, ++first, ++values, ++out) {
    const Value<V> value = *values;
    *out = start || *(first - 1) != *first ? value : static_cast<Value<V>>(*(out - 1) + value);
  }
  return out;
}
template <NoPolicy K, typename V, typename O>
O exclusive_scan_by_key(K first, K last, V values, O out) {
  Value<V> sum{};
  for (bool start = true; first != last; start = false, ++first, ++values, ++out) {
    const Value<V> value = *values;
    if (start || *(first - 1) != *first) sum = {};
    *out = sum;
    sum = sum + value;
  }
  return out;
}
template <NoPolicy I, typename F>
I find_if(I first, I last, F predicate) {
  return std::find_if(first, last, predicate);
}
template <NoPolicy I, typename F>
bool none_of(I first, I last, F predicate) {
  return std::none_of(first, last, predicate);
}
template <NoPolicy I, typename F>
I partition(I first, I last, F predicate) {
  return std::stable_partition(first, last, predicate);
}
template <NoPolicy I, typename F>
I stable_partition(I first, I last, F predicate) {
  return std::stable_partition(first, last, predicate);
}
template <NoPolicy I, typename V, typename O>
requires requires(V v) { *v; }
O lower_bound(I first, I last, V values, V values_end, O out) {
  for (; values != values_end; ++values, ++out) *out = std::lower_bound(first, last, *values) - first;
  return out;
}
template <NoPolicy I, typename V, typename O>
requires requires(V v) { *v; }
O upper_bound(I first, I last, V values, V values_end, O out) {
  for (; values != values_end; ++values, ++out) *out = std::upper_bound(first, last, *values) - first;
  return out;
}
template <NoPolicy I, typename T>
bool binary_search(I first, I last, const T& value) {
  return std::binary_search(first, last, value);
}
template <NoPolicy I, typename J, typename O, typename... C>
O merge(I first, I last, J other, J other_end, O out, C... compare) {
  return std::merge(first, last, other, other_end, out, compare...);
}
template <NoPolicy I, typename J, typename O>
O set_difference(I first, I last, J other, J other_end, O out) {
  return std::set_difference(first, last, other, other_end, out);
}
template <NoPolicy I, typename J, typename O>
O set_intersection(I first, I last, J other, J other_end, O out) {
  return std::set_intersection(first, last, other, other_end, out);
}
template <NoPolicy I, typename J>
J swap_ranges(I first, I last, J other) {
  return std::swap_ranges(first, last, other);
}
template <NoPolicy I>
bool is_sorted_until(I first, I last) {
  return std::is_sorted_until(first, last);
}
template <NoPolicy I, typename T>
void uninitialized_fill(I first, I last, const T& value) {
  std::fill(first, last, value);
}
template <NoPolicy I, typename N>
void advance(I& it, N count) {
  it += count;
}

#define PORTOLAN_WITH_POLICY(NAME)                           \
  template <typename... Rest>                                \
  auto NAME(const Policy&, Rest&&... rest)->decltype(auto) { \
    return NAME(std::forward<Rest>(rest)...);                \
  }
// clang-format 14 does not settle here.
// clang-format off
#define PORTOLAN_MORE(X) \
  X(unique_by_key) X(unique_by_key_copy) X(unique_copy) X(remove) X(remove_copy_if) X(replace_if) X(transform_if) \
  X(scatter_if) X(transform_inclusive_scan) X(transform_exclusive_scan) X(inclusive_scan_by_key) \
  X(exclusive_scan_by_key) X(find_if) X(none_of) X(partition) X(stable_partition) X(binary_search) X(merge) \
  X(set_difference) X(set_intersection) X(swap_ranges) X(uninitialized_fill)
// clang-format on
PORTOLAN_MORE(PORTOLAN_WITH_POLICY)
#undef PORTOLAN_MORE
#undef PORTOLAN_WITH_POLICY

}  // namespace thrust
